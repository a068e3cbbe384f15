package metrics

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"cupola/runtime/fault"
	"cupola/runtime/lrp"
	"cupola/server/acme"
	"cupola/server/reconcile"
	"cupola/store"
)

// scrape serves m and gets what Prometheus would.
func scrape(t *testing.T, m *Metrics) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- m.Serve(ctx, l) }()
	res, err := http.Get("http://" + l.Addr().String() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("got %d %s, %v", res.StatusCode, text, err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestMetrics(t *testing.T) {
	m := New(Config{Environment: "example.com", Log: slog.New(slog.DiscardHandler), State: func(context.Context) (State, error) {
		return State{Tally: store.Tally{RunningTasks: 3, RunningTasksMB: 2}, Domains: []string{"cf-apps"}, Routes: 7, Budgets: []Budget{{"apps", 3, 9}}, Refused: map[string]int64{"app": 5, "idle": 2, "address": 1}, DBBytes: 4096, WaitingWrites: 6, LongWrites: 8, LogStreams: 4, DroppedEnvelopes: 13, Uptime: time.Minute, ACME: &acme.Status{Valid: 12, Missing: 2, Failing: 1, Failed: 4, FirstEnd: time.Unix(1900000000, 0)},
			Cells: []lrp.CellUse{{Cell: lrp.Cell{ID: "one", MemoryMB: 100, Containers: 250}, UsedMemoryMB: 30, UsedContainers: 2}, {Cell: lrp.Cell{ID: "two", MemoryMB: 5}, UsedMemoryMB: 9}}}, nil
	}})
	m.Requested(Request{Status: 200, AppGUID: "a", Took: 10 * time.Millisecond})
	m.Requested(Request{Status: 502, AppGUID: "a", Took: 30 * time.Millisecond})
	m.Requested(Request{Status: 404, Took: 20 * time.Millisecond})
	m.Requested(Request{AppGUID: "a", Took: 20 * time.Millisecond})
	m.Converged(reconcile.Look{Desired: 5, Missing: 1, Running: 4, Crashed: 1, Placed: 2, TasksPlaced: 3, Stagings: 1, Took: time.Millisecond})
	m.API(http.NotFoundHandler()).ServeHTTP(discard{http.Header{}}, &http.Request{})
	got := scrape(t, m)
	router := `{bosh_deployment="cf",bosh_job_id="0",bosh_job_ip="127.0.0.1",bosh_job_name="router",environment="example.com",origin="gorouter"`
	bbs := strings.NewReplacer("router", "diego-api", "gorouter", "bbs").Replace(router)
	cell := func(id string) string {
		return strings.NewReplacer(`job_id="0"`, `job_id="`+id+`"`, `"router"`, `"diego-cell"`, "gorouter", "rep").Replace(router)
	}
	bbs = strings.Replace(bbs, `origin="godiego-api"`, `origin="bbs"`, 1)
	for _, want := range []string{
		"firehose_counter_event_gorouter_total_requests_total" + router + "} 4",
		"firehose_counter_event_gorouter_responses_2_xx_total" + router + "} 1",
		"firehose_counter_event_gorouter_responses_5_xx_total" + router + "} 1",
		"firehose_counter_event_gorouter_responses_xxx_total" + router + "} 1",
		"firehose_counter_event_gorouter_bad_gateways_total" + router + "} 1",
		"firehose_counter_event_gorouter_rejected_requests_total" + router + "} 1",
		"firehose_value_metric_gorouter_latency" + router + `,unit="ms"} 20`,
		"firehose_value_metric_gorouter_total_routes" + router + "} 7",
		"firehose_value_metric_bbs_lr_ps_desired" + bbs + "} 5",
		"firehose_value_metric_bbs_lr_ps_running" + bbs + "} 4",
		"firehose_value_metric_bbs_crashed_actual_lr_ps" + bbs + "} 1",
		"firehose_value_metric_bbs_domain_cf_apps" + bbs + "} 1",
		"firehose_value_metric_rep_capacity_remaining_memory" + cell("one") + "} 70",
		"firehose_value_metric_rep_capacity_remaining_memory" + cell("two") + "} 0",
		"firehose_value_metric_rep_container_count" + cell("one") + "} 2",
		`cc_running_tasks_total{environment="example.com"} 3`,
		`cc_running_tasks_memory_bytes{environment="example.com"} 2.097152e+06`,
		`cc_staging_requests_total{environment="example.com"} 1`,
		`cc_requests_completed_total{environment="example.com"} 1`,
		`cupola_scrape_error{environment="example.com"} 0`,
		`cupola_db_size_bytes{environment="example.com"} 4096`,
		`cupola_listener_used{budget="apps",environment="example.com"} 3`,
		`cupola_listener_limit{budget="apps",environment="example.com"} 9`,
		`cupola_listener_refused_total{environment="example.com",reason="idle"} 2`,
		"firehose_counter_event_gorouter_backend_exhausted_conns_total" + router + "} 6",
		`cupola_db_writes_waiting{environment="example.com"} 6`,
		`cupola_db_long_writes_total{environment="example.com"} 8`,
		`cupola_log_streams{environment="example.com"} 4`,
		`cupola_log_stream_dropped_envelopes_total{environment="example.com"} 13`,
		`cupola_acme_names{environment="example.com",state="valid"} 12`,
		`cupola_acme_names{environment="example.com",state="missing"} 2`,
		`cupola_acme_names{environment="example.com",state="failing"} 1`,
		`cupola_acme_failures_total{environment="example.com"} 4`,
		`cupola_acme_first_expiry_timestamp_seconds{environment="example.com"} 1.9e+09`,
		"go_goroutines ", "process_resident_memory_bytes ",
	} {
		if !strings.Contains(got, "\n"+want) {
			t.Errorf("missing: %s", want)
		}
	}
	if t.Failed() {
		t.Log(got)
	}
}

func TestPanicsAreCounted(t *testing.T) {
	fault.Watch(func(*fault.Panic) {})
	_ = fault.Guard("of the test", func() error { panic("broken") })
	m := New(Config{Environment: "e", Log: slog.New(slog.DiscardHandler), State: func(context.Context) (State, error) { return State{}, nil }})
	if text, want := scrape(t, m), `cupola_panics_total{environment="e",part="of the test"} 1`; !strings.Contains(text, want) {
		t.Errorf("got %s; want %s", text, want)
	}
}

func TestScrapeWithoutState(t *testing.T) {
	m := New(Config{Environment: "x", Log: slog.New(slog.DiscardHandler), State: func(context.Context) (State, error) { return State{}, errors.New("busy") }})
	if got := scrape(t, m); !strings.Contains(got, `cupola_scrape_error{environment="x"} 1`) || !strings.Contains(got, "gorouter_total_requests_total") {
		t.Errorf("got %s; want what there is, and the error", got)
	}
}

// discard is a ResponseWriter.
type discard struct{ header http.Header }

func (d discard) Header() http.Header         { return d.header }
func (d discard) Write(p []byte) (int, error) { return len(p), nil }
func (d discard) WriteHeader(int)             {}

// TestPanicOfAScrapeEndsNothing has what a scrape asks for panic, in a goroutine
// of Prometheus's.
func TestPanicOfAScrapeEndsNothing(t *testing.T) {
	m := New(Config{State: func(context.Context) (State, error) { panic("broken") }, Log: slog.New(slog.DiscardHandler)})
	if body := scrape(t, m); !strings.Contains(body, "go_goroutines") || !strings.Contains(body, "cupola_panics_total") {
		t.Errorf("got %.200s; want all other metrics", body)
	}
}
