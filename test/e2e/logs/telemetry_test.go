package logs

import (
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	common "go.opentelemetry.io/proto/otlp/common/v1"
	metric "go.opentelemetry.io/proto/otlp/metrics/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"cupola/test/e2e"
)

// collector is one of OpenTelemetry.
type collector struct {
	t       *testing.T
	mu      sync.Mutex
	down    bool
	spans   []*trace.Span
	metrics map[string]bool
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	body, err := io.ReadAll(r.Body)
	if err != nil || c.down || r.Header.Get("Api-Key") != "tele-secret" {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	switch r.URL.Path {
	case "/v1/traces":
		var m trace.TracesData
		err = proto.Unmarshal(body, &m)
		for _, rs := range m.GetResourceSpans() {
			c.spans = append(c.spans, rs.GetScopeSpans()[0].GetSpans()...)
		}
	case "/v1/metrics":
		var m metric.MetricsData
		err = proto.Unmarshal(body, &m)
		for _, rm := range m.GetResourceMetrics() {
			for _, one := range rm.GetScopeMetrics()[0].GetMetrics() {
				c.metrics[one.GetName()] = true
			}
		}
	}
	if err != nil {
		c.t.Error(err)
	}
}

func (c *collector) setDown(down bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.down = down
}

// span finds a span with an attribute.
func (c *collector) span(name, value string) *trace.Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.spans {
		if attribute(s.GetAttributes(), name) == value {
			return s
		}
	}
	return nil
}

func (c *collector) all() []*trace.Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.spans)
}

func attribute(all []*common.KeyValue, name string) string {
	for _, a := range all {
		if a.GetKey() == name {
			return a.GetValue().GetStringValue()
		}
	}
	return ""
}

// pushIsTraced wants the staging and the start of the app that was pushed below the API's requests that caused them, with their steps.
func pushIsTraced(c *collector, d *e2e.Daemon) {
	d.T.Helper()
	for name, by := range map[string]struct {
		route string
		steps []string
	}{
		"stage": {"POST /v3/builds", []string{"network", "root filesystem", "download", "processes", "run", "finalize", "upload"}},
		"start": {"POST /v3/apps/{guid}/actions/", []string{"network", "root filesystem", "layers", "processes", "health check"}},
	} {
		e2e.Eventually(d.T, time.Minute, func() string {
			all := c.all()
			n := slices.IndexFunc(all, func(s *trace.Span) bool { return s.GetName() == name })
			if n < 0 {
				return "there is no span " + name
			}
			s := all[n]
			parent := slices.IndexFunc(all, func(p *trace.Span) bool {
				return slices.Equal(p.GetSpanId(), s.GetParentSpanId()) && slices.Equal(p.GetTraceId(), s.GetTraceId())
			})
			if parent < 0 || !strings.HasPrefix(all[parent].GetName(), by.route) {
				return fmt.Sprintf("the span %v has another parent than %s", s, by.route)
			}
			if attribute(s.GetAttributes(), "cloudfoundry.app.name") != "probe" {
				d.T.Errorf("got %v; want the app's name", s)
			}
			for _, step := range by.steps {
				if !slices.ContainsFunc(all, func(p *trace.Span) bool {
					return p.GetName() == step && slices.Equal(p.GetParentSpanId(), s.GetSpanId())
				}) {
					d.T.Errorf("%s has no step %q: %v", name, step, all)
				}
			}
			return ""
		})
	}
}

// TestOpenTelemetry makes a collector get the spans of requests to an app and to the
// API, also after a time in which it took nothing, and metrics at the daemon's end.
func TestOpenTelemetry(t *testing.T) {
	t.Parallel()
	c := &collector{t: t, metrics: map[string]bool{}}
	srv := httptest.NewServer(c)
	defer srv.Close()
	d := e2e.StartDaemon(t, e2e.NeedBinary(t), "--open-telemetry", srv.URL, "--open-telemetry-header", "api-key=tele-secret", "--open-telemetry-sample", "100%")
	d.PushProbe("probe")
	d.Answers("probe", "ready")
	pushIsTraced(c, d)
	c.setDown(true)
	e2e.Eventually(t, time.Minute, func() string {
		if _, _, err := d.Get("probe.localhost", "/"); err != nil {
			return err.Error()
		}
		if !strings.Contains(d.Log.String(), "OpenTelemetry's collector does not take data") {
			return "the log does not say that the collector does not take data"
		}
		return ""
	})
	c.setDown(false)

	const traced, parent = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+d.Addr+"/trace?at=probe", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host, req.Header = "probe.localhost", http.Header{"Traceparent": {"00-" + traced + "-" + parent + "-01"}}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	guid := d.App("probe")
	e2e.Eventually(t, time.Minute, func() string {
		s := c.span("url.path", "/trace")
		if s == nil {
			return "there is no span of the request"
		}
		own := hex.EncodeToString(s.GetSpanId())
		if hex.EncodeToString(s.GetTraceId()) != traced || hex.EncodeToString(s.GetParentSpanId()) != parent || string(got) != "[00-"+traced+"-"+own+"-01]\n" || attribute(s.GetAttributes(), "cloudfoundry.app.id") != guid {
			t.Fatalf("got %v; the app had %s", s, got)
		}
		if s = c.span("http.route", "GET /v3/apps/{guid}/processes"); s == nil {
			d.API("GET", "/v3/apps/"+guid+"/processes", nil, nil)
			return "there is no span of the API's route"
		}
		return ""
	})
	if err := d.Cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = d.Cmd.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range []string{"cc_requests_completed_total", "cupola_router_request_duration_seconds", "process_resident_memory_bytes"} {
		if !c.metrics[name] {
			t.Errorf("the collector did not get %s: %v", name, c.metrics)
		}
	}
	if strings.Contains(d.Log.String(), "tele-secret") {
		t.Error("the log has the header's value")
	}
}
