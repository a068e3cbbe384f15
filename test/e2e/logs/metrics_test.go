package logs

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"cupola/test/e2e"
	"cupola/test/loopback"
)

// sampled is an answer of the PromQL API.
type sampled struct {
	Data struct {
		Result []struct {
			Metric map[string]string
			Value  [2]any
		}
	}
}

// TestMetrics drives an app, and asks the log cache and Prometheus's endpoint
// what they know about it.
func TestMetrics(t *testing.T) {
	t.Parallel()
	at := fmt.Sprintf("127.0.0.1:%d", loopback.FreePorts(t, 1)[0])
	d := e2e.StartDaemon(t, e2e.NeedBinary(t), "--metrics", at)
	d.PushProbe("probe")
	guid := d.App("probe")
	d.Answers("probe", "ready")
	ask := func(query string) (found sampled) {
		d.API("GET", "/api/v1/query?query="+url.QueryEscape(query), nil, &found)
		return found
	}
	one := func(query string, fits func(float64) bool) {
		t.Helper()
		e2e.Eventually(t, time.Minute, func() string {
			found := ask(query)
			if len(found.Data.Result) != 1 {
				return fmt.Sprintf("%s: not one sample: %v", query, found.Data.Result)
			}
			text, _ := found.Data.Result[0].Value[1].(string)
			if v, err := strconv.ParseFloat(text, 64); err != nil || !fits(v) {
				return query + ": got " + text
			}
			return ""
		})
	}
	source := `{source_id="` + guid + `"`
	one(`sum(count_over_time(http`+source+`,status_code="200",peer_type="Server"}[5m]))`, func(v float64) bool { return v >= 1 })
	one("memory"+source+`,process_type="web",origin="rep"}`, func(v float64) bool { return v > 100_000 })
	one("memory_quota"+source+`,process_type="web"}`, func(v float64) bool { return v > 0 && v == float64(int(v)>>20<<20) })
	one("sum by (source_id) (container_age"+source+"})", func(v float64) bool { return v > 0 && v < float64(10*time.Minute) })

	e2e.Eventually(t, time.Minute, func() string { // the control loop looks every 30 s at least
		res, err := http.Get("http://" + at + "/metrics")
		if err != nil {
			return err.Error()
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		if err != nil {
			return err.Error()
		}
		for _, want := range []string{
			"firehose_value_metric_bbs_lr_ps_running{", "firehose_value_metric_bbs_lr_ps_desired{", "firehose_value_metric_rep_container_count{",
			"firehose_counter_event_gorouter_responses_2_xx_total{", "cc_staging_requests_total{", "cc_requests_completed_total{", "cupola_db_size_bytes{",
		} {
			_, after, _ := strings.Cut(string(text), "\n"+want)
			_, value, _ := strings.Cut(strings.SplitN(after, "\n", 2)[0], "} ")
			if v, err := strconv.ParseFloat(value, 64); err != nil || v < 1 {
				return want + " … has " + value + "; want 1 or more"
			}
		}
		return ""
	})
}

// lines is an answer of a query over a range.
type lines struct {
	Data struct {
		Result []struct {
			Metric map[string]string
			Values [][2]any
		}
	}
}

// What was measured of containers and requests before a kill -9 is one line with what is
// measured after it, but for the second before the kill.
func TestMetricsOutliveAKill(t *testing.T) {
	t.Parallel()
	d := e2e.StartDaemon(t, e2e.NeedBinary(t))
	d.PushProbe("probe")
	d.Answers("probe", "ready")
	source := `{source_id="` + d.App("probe") + `"}`
	begin := time.Now().Unix()
	over := func(query string) map[int64]string {
		var found lines
		d.API("GET", fmt.Sprintf("/api/v1/query_range?query=%s&start=%d&end=%d&step=1", url.QueryEscape(query), begin, time.Now().Unix()), nil, &found)
		all := map[int64]string{}
		for _, r := range found.Data.Result {
			for _, v := range r.Values {
				at, _ := v[0].(float64)
				all[int64(at)], _ = v[1].(string)
			}
		}
		return all
	}
	requests := `sum(http_requests_total` + source + `)`
	for range 5 {
		d.Answers("probe", "ready")
	}
	e2e.Eventually(t, time.Minute, func() string {
		served, memory := over(requests), over("sum(memory"+source+")")
		if len(served) < 3 || len(memory) < 3 {
			return fmt.Sprintf("got %v and %v", served, memory)
		}
		return ""
	})
	time.Sleep(2 * time.Second) // what is a second old is in a file
	asked := time.Now().Unix()
	before := map[string]map[int64]string{}
	for _, query := range []string{requests, "sum(memory" + source + ")", "sum(container_age" + source + ")", "sum(http_request_duration_seconds_count" + source + ")"} {
		before[query] = over(query)
	}
	d.Kill()
	d.Start()
	again := time.Now().Unix()
	d.Answers("probe", "ready")
	e2e.Eventually(t, time.Minute, func() string {
		for query, was := range before {
			now := over(query)
			for at, value := range was {
				if at < asked-1 && now[at] != value {
					t.Fatalf("%s at %d: got %q; before the kill it was %q", query, at, now[at], value)
				}
			}
			if len(was) == 0 || now[time.Now().Unix()-1] == "" {
				return fmt.Sprintf("%s: got %v before and %v after the kill", query, was, now)
			}
		}
		rate := over(`sum(increase(http_requests_total` + source + `[5m]))`)
		if n, err := strconv.ParseFloat(rate[time.Now().Unix()-1], 64); err != nil || n < 6 {
			return fmt.Sprintf("%v requests since %d", rate, again)
		}
		return ""
	})
}
