package otlp

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metric "go.opentelemetry.io/proto/otlp/metrics/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// collector is an OTLP receiver.
type collector struct {
	t      *testing.T
	mu     sync.Mutex
	status int // 0: 200
	spans  []*trace.Span
	points map[string]*metric.Metric
	keys   []string
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keys = append(c.keys, r.Header.Get("Api-Key"))
	if err != nil || r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/x-protobuf" {
		c.t.Errorf("got %s %s of %s, %v", r.Method, r.URL, r.Header, err)
	}
	if c.status != 0 {
		http.Error(w, "no room", c.status)
		return
	}
	switch r.URL.Path {
	case "/in/v1/traces":
		var m trace.TracesData
		err = proto.Unmarshal(body, &m)
		for _, rs := range m.GetResourceSpans() {
			for _, ss := range rs.GetScopeSpans() {
				c.spans = append(c.spans, ss.GetSpans()...)
			}
		}
	case "/in/v1/metrics":
		var m metric.MetricsData
		err = proto.Unmarshal(body, &m)
		for _, rm := range m.GetResourceMetrics() {
			if got := rm.GetResource().GetAttributes(); len(got) != 1 || got[0].GetKey() != "service.name" {
				c.t.Errorf("got resource %v", got)
			}
			for _, sm := range rm.GetScopeMetrics() {
				for _, one := range sm.GetMetrics() {
					c.points[one.GetName()] = one
				}
			}
		}
	default:
		c.t.Errorf("got a request for %s", r.URL)
	}
	if err != nil {
		c.t.Error(err)
	}
}

func newExporter(t *testing.T, c *collector, sample float64, g prometheus.Gatherer) *Exporter {
	t.Helper()
	srv := httptest.NewServer(c)
	t.Cleanup(srv.Close)
	to, err := url.Parse(srv.URL + "/in/")
	if err != nil {
		t.Fatal(err)
	}
	return New(Config{URL: to, Headers: http.Header{"Api-Key": {"k"}}, Sample: sample, Gatherer: g, Resource: map[string]string{"service.name": "x"}, Log: slog.New(slog.DiscardHandler)})
}

func TestMetricsAreWhatPrometheusScrapes(t *testing.T) {
	r := prometheus.NewRegistry()
	count := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "c_total"}, []string{"part"})
	gauge := prometheus.NewGauge(prometheus.GaugeOpts{Name: "g"})
	spread := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "h", Buckets: []float64{1, 2}})
	short := prometheus.NewSummary(prometheus.SummaryOpts{Name: "s", Objectives: map[float64]float64{.5: .1}})
	r.MustRegister(count, gauge, spread, short)
	count.WithLabelValues("a").Add(3)
	gauge.Set(-1.5)
	for _, v := range []float64{.5, .7, 1.5, 9, 9} {
		spread.Observe(v)
		short.Observe(v)
	}
	c := &collector{t: t, points: map[string]*metric.Metric{}}
	if err := newExporter(t, c, 0, r).sendMetrics(t.Context()); err != nil {
		t.Fatal(err)
	}
	sum := c.points["c_total"].GetSum()
	if p := sum.GetDataPoints(); !sum.GetIsMonotonic() || sum.GetAggregationTemporality() != metric.AggregationTemporality_AGGREGATION_TEMPORALITY_CUMULATIVE || len(p) != 1 ||
		p[0].GetAsDouble() != 3 || p[0].GetAttributes()[0].GetValue().GetStringValue() != "a" || p[0].GetStartTimeUnixNano() == 0 || p[0].GetTimeUnixNano() < p[0].GetStartTimeUnixNano() {
		t.Errorf("got counter %v", sum)
	}
	if p := c.points["g"].GetGauge().GetDataPoints(); len(p) != 1 || p[0].GetAsDouble() != -1.5 {
		t.Errorf("got gauge %v", p)
	}
	h := c.points["h"].GetHistogram().GetDataPoints()[0]
	if got := h.GetBucketCounts(); len(got) != 3 || got[0] != 2 || got[1] != 1 || got[2] != 2 || h.GetCount() != 5 || math.Abs(h.GetSum()-20.7) > 1e-9 {
		t.Errorf("got histogram %v", h)
	}
	if s := c.points["s"].GetSummary().GetDataPoints()[0]; s.GetCount() != 5 || len(s.GetQuantileValues()) != 1 {
		t.Errorf("got summary %v", s)
	}
}

func TestTracesAreContinued(t *testing.T) {
	const parent = "0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331"
	for _, test := range []struct {
		name, header string
		sample       float64
		sampled      bool
		trace        string // "": a new one
	}{
		{"the client's", "00-" + parent + "-01", 0, true, parent[:32]},
		{"the client's is not sampled", "00-" + parent + "-00", 1, false, ""},
		{"a later version", "01-" + parent + "-03-more", 0, true, parent[:32]},
		{"none", "", 1, true, ""},
		{"none is to be", "", 0, false, ""},
		{"upper case is none", "00-" + strings.ToUpper(parent) + "-01", 1, true, ""},
		{"zeros are none", "00-" + strings.Repeat("0", 32) + "-b7ad6b7169203331-01", 1, true, ""},
		{"too long is none", "00-" + parent + "-01-x", 0, false, ""},
		{"no hex is none", "00-" + strings.Repeat("g", 32) + "-b7ad6b7169203331-01", 0, false, ""},
	} {
		c := &collector{t: t}
		e := newExporter(t, c, test.sample, prometheus.NewRegistry())
		h := http.Header{}
		if test.header != "" {
			h[header] = []string{test.header}
		}
		got := e.Begin(h)
		if !test.sampled {
			if got != "" {
				t.Errorf("%s: got %q; want no trace", test.name, got)
			}
			continue
		}
		if m := regexp.MustCompile(`^00-([0-9a-f]{32})-([0-9a-f]{16})-01$`).FindStringSubmatch(got); m == nil || test.trace != "" && m[1] != test.trace || m[2] == parent[33:] {
			t.Errorf("%s: got %q", test.name, got)
			continue
		}
		now := time.Now()
		e.Record(Span{Trace: got, Request: h, Name: "GET", Began: now.Add(-time.Second), Ended: now, Status: 502, Text: map[string]string{"a": "b\xff", "empty": ""}})
		if err := e.sendSpans(t.Context()); err != nil || len(c.spans) != 1 || c.keys[0] != "k" {
			t.Fatalf("%s: got %v, %v, keys %q", test.name, c.spans, err, c.keys)
		}
		s := c.spans[0]
		if hasParent := len(s.GetParentSpanId()) > 0; hasParent != (test.trace != "") || len(s.GetTraceId()) != 16 || len(s.GetAttributes()) != 2 ||
			s.GetStatus().GetCode() != trace.Status_STATUS_CODE_ERROR || s.GetEndTimeUnixNano()-s.GetStartTimeUnixNano() != uint64(time.Second) {
			t.Errorf("%s: got %v", test.name, s)
		}
	}
}

// TestNothingWaitsForTheCollector has one that takes nothing.
func TestNothingWaitsForTheCollector(t *testing.T) {
	c := &collector{t: t, status: http.StatusServiceUnavailable}
	e := newExporter(t, c, 1, prometheus.NewRegistry())
	for range maxSpans + 10 {
		e.Record(Span{Trace: e.Begin(http.Header{})})
	}
	if len(e.spans) != maxSpans || e.dropped != 10 {
		t.Errorf("got %d spans and %d dropped", len(e.spans), e.dropped)
	}
	if err := e.sendSpans(t.Context()); err == nil || !strings.Contains(err.Error(), "503") || !strings.Contains(err.Error(), "no room") {
		t.Errorf("got %v; want the collector's answer", err)
	}
	if len(e.spans) != 0 || e.dropped != 0 {
		t.Errorf("got %d spans and %d dropped; want none kept", len(e.spans), e.dropped)
	}
}

// TestLongTextsAreCut holds that clients cannot fill the memory by long paths.
func TestLongTextsAreCut(t *testing.T) {
	c := &collector{t: t}
	e := newExporter(t, c, 1, prometheus.NewRegistry())
	long := strings.Repeat("x", 60<<10)
	e.Record(Span{Trace: e.Begin(http.Header{}), Name: long, Text: map[string]string{"url.path": long, "user_agent.original": long[:maxText-1] + "é"}})
	if got := len(e.spans[0]); got > 4*maxText {
		t.Errorf("got a span of %d bytes", got)
	}
	if err := e.sendSpans(t.Context()); err != nil || len(c.spans) != 1 || c.spans[0].GetName() != long[:maxText] {
		t.Errorf("got %v, %v", c.spans, err)
	}
}

func TestRunSendsAtItsEnd(t *testing.T) {
	r := prometheus.NewRegistry()
	r.MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Name: "g"}))
	c := &collector{t: t, points: map[string]*metric.Metric{}}
	e := newExporter(t, c, 1, r)
	e.Record(Span{Trace: e.Begin(http.Header{})})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := e.Run(ctx); err != nil || len(c.spans) != 1 || c.points["g"] == nil {
		t.Errorf("got %v, %d spans, metrics %v", err, len(c.spans), c.points)
	}
}

// TestCollectorOfTracesAlone says once that metrics are not taken, and does not end the daemon for it.
func TestCollectorOfTracesAlone(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	asked := make(chan string, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "metrics") {
			w.WriteHeader(http.StatusNotFound)
		}
		select {
		case asked <- r.URL.Path:
		case <-ctx.Done():
		}
	}))
	defer srv.Close()
	to, err := url.Parse(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	e := New(Config{URL: to, Sample: 1, Gatherer: prometheus.NewRegistry(), Log: slog.New(slog.NewTextHandler(&log, nil)), Interval: 5 * time.Millisecond})
	done := make(chan error)
	go func() { done <- e.Run(ctx) }()
	for metrics, traces := 0, 0; metrics < 4 || traces < 4; {
		if e.Record(Span{Trace: e.Begin(http.Header{})}); strings.HasSuffix(<-asked, "metrics") {
			metrics++
		} else {
			traces++
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("got %v; want the daemon to end as ever", err)
	}
	text := log.String()
	if strings.Count(text, `does not take data" signal=metrics`) != 1 || strings.Contains(text, "again") || strings.Contains(text, "signal=traces") || !strings.Contains(text, "the last metrics") {
		t.Errorf("got the log\n%s", text)
	}
}

func TestFlags(t *testing.T) {
	for _, test := range []struct {
		flags Flags
		want  string // in the error
	}{
		{Flags{Sample: "1%"}, ""},
		{Flags{Collector: "http://127.0.0.1:4318", Sample: "0%"}, ""},
		{Flags{Collector: "https://user:pw@example.com/otlp", Sample: "12.5%", Headers: map[string]string{"api-key": "x"}}, ""},
		{Flags{Collector: "127.0.0.1:4318", Sample: "1%"}, "--open-telemetry"},
		{Flags{Collector: "grpc://127.0.0.1:4317", Sample: "1%"}, "like http://localhost:4318"},
		{Flags{Collector: "http://:secret@x y", Sample: "1%"}, "--open-telemetry"},
		{Flags{Sample: "2"}, "--open-telemetry-sample"},
		{Flags{Sample: "101%"}, "--open-telemetry-sample"},
		{Flags{Sample: "NaN%"}, "--open-telemetry-sample"},
		{Flags{Sample: "1%", Headers: map[string]string{"a": "b"}}, "needs --open-telemetry"},
		{Flags{Collector: "http://x", Sample: "1%", Headers: map[string]string{"a b": "secret"}}, `"a b"`},
	} {
		err := test.flags.Check()
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) || err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%+v: got %v; want %q", test.flags, err, test.want)
		}
	}
	c := Flags{Collector: "http://x", Sample: "12.5%"}.Config()
	if c == nil || c.Sample != .125 {
		t.Errorf("got %+v; want a part of 0.125", c)
	}
	if c := (Flags{Sample: "1%"}).Config(); c != nil {
		t.Errorf("got %+v; want none", c)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	f.Add("cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-x")
	f.Fuzz(func(t *testing.T, text string) {
		p, _, ok := parse([]string{text})
		if ok && (p.trace == [16]byte{} || p.span == [8]byte{}) {
			t.Errorf("%q: got %+v", text, p)
		}
	})
}
