package metrics

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"cupola/runtime/lrp"
	"cupola/server/control/audit"
	"cupola/server/otlp"
	"cupola/server/reconcile"
	"cupola/store"
	"cupola/store/cf"
)

// spansOf are the spans that a daemon's metrics send of what do does, by name.
func spansOf(t *testing.T, sample float64, do func(*Metrics)) map[string]*trace.Span {
	t.Helper()
	spans := map[string]*trace.Span{}
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var all trace.TracesData
		if err == nil && strings.HasSuffix(r.URL.Path, "traces") {
			err = proto.Unmarshal(body, &all)
		}
		if err != nil {
			t.Error(err)
		}
		for _, rs := range all.GetResourceSpans() {
			for _, s := range rs.GetScopeSpans()[0].GetSpans() {
				spans[s.GetName()] = s
			}
		}
	}))
	defer srv.Close()
	to, err := url.Parse(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	m := New(Config{Environment: "e", Export: &otlp.Config{URL: to, Sample: sample}, State: func(context.Context) (State, error) { return State{}, nil }, Log: slog.New(slog.DiscardHandler)})
	do(m)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := m.Send(ctx); err != nil {
		t.Fatal(err)
	}
	return spans
}

// request changes an app by the API, as a client that sends a trace's header.
func request(t *testing.T, m *Metrics, method, traceparent string) {
	t.Helper()
	s, err := store.Open(store.Config{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	r := httptest.NewRequest(method, "/v3/apps/a/actions/start", nil)
	r.Header.Set("traceparent", traceparent)
	m.API(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		err := s.Write(r.Context(), func(tx *store.Tx) error {
			return audit.Write(tx, cf.Actor{GUID: "u"}, audit.AppStart, audit.Target{Type: "app", GUID: "a"}, nil)
		})
		if err != nil {
			t.Error(err)
		}
	})).ServeHTTP(httptest.NewRecorder(), r)
}

const client = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0"

func instance(guid string) lrp.Container {
	return lrp.Container{GUID: guid, Kind: lrp.KindInstance, Domain: lrp.DomainApps, ProcessGUID: "p-v", Index: 3, RunInfo: lrp.RunInfo{RootFS: "preloaded:minifs",
		Log: lrp.LogTarget{GUID: "a", Tags: map[string]string{"app_name": "shop", "space_name": "dev", "organization_name": "o", "process_id": "p", "process_type": "web"}}}}
}

func took(failure string, result string, steps ...string) lrp.Trace {
	now := time.Now()
	t := lrp.Trace{Began: now.Add(-time.Second), Ended: now, Failure: failure, Result: []byte(result)}
	for _, name := range steps {
		t.Steps = append(t.Steps, lrp.Step{Name: name, Detail: "d-" + name, Began: t.Began, Ended: t.Ended, Failed: name == steps[len(steps)-1] && failure != ""})
	}
	return t
}

// TestStartIsPartOfItsRequest starts instances by a request of a client that is traced.
func TestStartIsPartOfItsRequest(t *testing.T) {
	spans := spansOf(t, 0, func(m *Metrics) {
		request(t, m, "POST", client+"1")
		report := m.TraceContainer()(instance("i"))
		report(took("", "", "network", "layers"))
		if again := m.TraceContainer()(instance("i2")); again != nil {
			t.Error("a second start of the same instance is traced as the request's")
		}
	})
	asked, start, step := spans["POST"], spans["start"], spans["layers"]
	if asked == nil || start == nil || step == nil {
		t.Fatalf("got spans %v", spans)
	}
	if !slices.Equal(start.GetTraceId(), asked.GetTraceId()) || hex.EncodeToString(start.GetTraceId()) != client[3:35] || !slices.Equal(start.GetParentSpanId(), asked.GetSpanId()) || !slices.Equal(step.GetParentSpanId(), start.GetSpanId()) {
		t.Errorf("got %v below %v, and %v", start, asked, step)
	}
	got := map[string]string{}
	for _, a := range start.GetAttributes() {
		got[a.GetKey()] = a.GetValue().GetStringValue()
	}
	want := map[string]string{"cloudfoundry.app.id": "a", "cloudfoundry.app.name": "shop", "cloudfoundry.app.instance.id": "3", "cloudfoundry.process.id": "p", "cloudfoundry.process.type": "web",
		"cloudfoundry.space.name": "dev", "cloudfoundry.org.name": "o", "container.id": "i", "container.image.name": "preloaded:minifs"}
	if fmt.Sprint(got) != fmt.Sprint(want) || start.GetKind() != trace.Span_SPAN_KIND_INTERNAL || start.GetStatus() != nil {
		t.Errorf("got %v of %v; want %v", got, start, want)
	}
}

// TestSamplingOfStarts wants what a request causes to be sampled as that is, and what none causes by chance.
func TestSamplingOfStarts(t *testing.T) {
	spans := spansOf(t, 1, func(m *Metrics) {
		request(t, m, "POST", client+"0")
		if m.TraceContainer()(instance("i")) != nil {
			t.Error("what a request that is not sampled caused is traced")
		}
		report := m.TraceContainer()(instance("i")) // by a crash
		report(took("", ""))
		if c := instance("t"); true {
			c.Kind, c.Domain = lrp.KindTask, lrp.DomainTasks
			if m.TraceContainer()(c) != nil {
				t.Error("a task of the app's is traced")
			}
		}
	})
	if s := spans["start"]; s == nil || len(s.GetParentSpanId()) > 0 {
		t.Errorf("got %v; want a trace of its own", s)
	}
}

// TestReadsCauseNothing makes a request show what is audited, and change nothing.
func TestReadsCauseNothing(t *testing.T) {
	spansOf(t, 0, func(m *Metrics) {
		request(t, m, "GET", client+"1")
		if m.TraceContainer()(instance("i")) != nil {
			t.Error("a start is traced as that of a request that read")
		}
	})
}

func TestStagingHasPhases(t *testing.T) {
	spans := spansOf(t, 1, func(m *Metrics) {
		c := instance("b")
		c.Kind, c.Domain, c.Log.Source = lrp.KindTask, lrp.DomainStaging, "STG"
		m.TraceContainer()(c)(took("it failed", `{"phases": [{"name": "detect", "buildpack": "go", "failed": true}, {"name": "finalize", "buildpack": "https://u:secret@h/x.zip"}]}`, "download", "run"))
	})
	for name, failure := range map[string]string{"stage": "it failed", "download": "", "run": "it failed", "detect": "", "finalize": ""} {
		if s := spans[name]; s == nil || s.GetStatus().GetMessage() != failure || strings.Contains(fmt.Sprint(s), "secret") {
			t.Errorf("%s: got %v; want the failure %q", name, s, failure)
		}
	}
}

func TestPullsAreTraced(t *testing.T) {
	spans := spansOf(t, 1, func(m *Metrics) {
		pull := m.TracedPull(func(context.Context, reconcile.ImagePull) (reconcile.Image, error) {
			return reconcile.Image{}, errors.New("no such image")
		})
		if _, err := pull(t.Context(), reconcile.ImagePull{Reference: "docker://x", AppGUID: "a"}); err == nil {
			t.Error("the error is lost")
		}
	})
	if s := spans["pull image"]; s.GetStatus().GetMessage() != "no such image" {
		t.Errorf("got %v", s)
	}
}

// TestNothingIsTracedWithoutACollector holds that what costs time is off.
func TestNothingIsTracedWithoutACollector(t *testing.T) {
	m := New(Config{State: func(context.Context) (State, error) { return State{}, nil }})
	if m.TraceContainer() != nil || m.Trace() != nil {
		t.Error("containers or requests are traced")
	}
}

// TestCausesAreBounded notes more apps than are kept, and looks after their time.
func TestCausesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c causes
		for n := range maxCauses + 10 {
			c.set(fmt.Sprint(n), "t")
		}
		if _, known := c.of(fmt.Sprint(maxCauses+9), "x"); len(c.byApp) != maxCauses || !known {
			t.Errorf("got %d causes, the last one known: %v", len(c.byApp), known)
		}
		<-time.After(causeTime + time.Second)
		if _, known := c.of(fmt.Sprint(maxCauses+9), "y"); known {
			t.Error("a request of long ago is the cause")
		}
		if c.set("new", "t"); len(c.byApp) != 1 {
			t.Errorf("got %d causes; want those of long ago forgotten", len(c.byApp))
		}
	})
}
