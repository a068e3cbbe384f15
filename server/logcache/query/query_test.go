package query

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cupola/server/logcache"
)

// mine lets everybody see all sources but those of others.
func mine(r *http.Request, ids ...string) (map[string]bool, error) {
	if r.Header.Get("Authorization") == "nobody" {
		return nil, errors.New("who are you?")
	}
	may := map[string]bool{}
	for _, id := range ids {
		if !strings.HasPrefix(id, "theirs") {
			may[id] = true
		}
	}
	return may, nil
}

// asker is who says so.
func asker(r *http.Request) string { return r.Header.Get("Authorization") }

// TestOneUserLeavesTurns: one user asks for more than they get at once.
func TestOneUserLeavesTurns(t *testing.T) {
	s := newServer(measured(), mine, asker)
	for range maxOfUser {
		slot, err := s.queue.Acquire(t.Context(), "greedy")
		if err != nil {
			t.Fatal(err)
		}
		defer slot.Release()
	}
	for user, want := range map[string]int{"greedy": http.StatusServiceUnavailable, "modest": http.StatusOK} {
		ctx, cancel := context.WithCancel(t.Context())
		if user == "greedy" { // it waits for a slot of its other queries
			ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		}
		r, w := httptest.NewRequestWithContext(ctx, "GET", "/api/v1/query?time=1285&query="+url.QueryEscape(`cpu{source_id="a"}`), nil), httptest.NewRecorder()
		r.Header.Set("Authorization", user)
		s.handler().ServeHTTP(w, r)
		cancel()
		if w.Code != want {
			t.Errorf("%s: got %d %s; want %d", user, w.Code, w.Body, want)
		}
	}
}

func TestNobodyIsAnsweredNothing(t *testing.T) {
	for path, status := range map[string]int{
		"query?query=1%2B": http.StatusNotFound, "query_range?query=cpu": http.StatusNotFound, // as log-cache
		"labels": http.StatusUnauthorized, "label/source_id/values": http.StatusUnauthorized, "series?match[]=cpu": http.StatusUnauthorized, "metadata": http.StatusUnauthorized,
		"rules": http.StatusUnauthorized, "query_exemplars": http.StatusUnauthorized, "status/buildinfo": http.StatusUnauthorized,
	} {
		r, w := httptest.NewRequest("GET", "/api/v1/"+path, nil), httptest.NewRecorder()
		r.Header.Set("Authorization", "nobody")
		Handler(measured(), mine, asker).ServeHTTP(w, r)
		want := `{"status":"error","errorType":"unauthorized","error":"` + errStranger + `"}`
		if got := strings.TrimSpace(w.Body.String()); w.Code != status || got != want {
			t.Errorf("%s: got %d %s", path, w.Code, got)
		}
	}
}

// measured is a cache of two instances of "a" and one of "theirs": cpu at 1000,
// 1015, …, 1285, and a request in each of the seconds from 1000 on.
func measured() *logcache.Cache {
	c := logcache.New(logcache.Config{})
	for _, source := range []string{"a", "theirs"} {
		for i := range 2 {
			tags := map[string]string{"origin": "rep", "process_type": "web", "no-label": "x"}
			for n := range 20 {
				c.Append(logcache.Envelope{Timestamp: time.Unix(int64(1000+15*n), 0), SourceID: source, InstanceID: fmt.Sprint(i), Tags: tags, Kind: logcache.Gauge,
					Metrics: []logcache.Metric{{Name: "cpu", Unit: "percentage", Value: float64(10*i + n)}, {Name: "http.latency", Value: 7}}})
			}
		}
	}
	for n := range 60 {
		at := time.Unix(int64(1000+n), 0)
		c.Append(logcache.Envelope{Timestamp: at, SourceID: "a", InstanceID: "0", Tags: map[string]string{"status_code": fmt.Sprint(200 + n%2*300)}, Kind: logcache.Timer,
			Began: at.Add(-time.Millisecond), Metrics: []logcache.Metric{{Name: "http", Value: 1e6}}})
	}
	return c
}

func ask(c *logcache.Cache, path string, values ...string) string {
	form := url.Values{}
	for i := 0; i < len(values); i += 2 {
		form.Set(values[i], values[i+1])
	}
	w := httptest.NewRecorder()
	Handler(c, mine, asker).ServeHTTP(w, httptest.NewRequest("GET", "/api/v1/"+path+"?"+form.Encode(), nil))
	return fmt.Sprint(w.Code, " ", strings.TrimSpace(w.Body.String()))
}

// hidden is the answer about a source that is not for the caller.
const hidden = `404 {"status":"error","errorType":"not_found","error":"no such source, or none that you may read"}`

func TestInstant(t *testing.T) {
	c := measured()
	tests := []struct{ query, at, want string }{
		{`cpu{source_id="a",instance_id="1"}`, "1020", `200 {"status":"success","data":{"resultType":"vector","result":[{"metric":{"__name__":"cpu","instance_id":"1","origin":"rep","process_type":"web","source_id":"a"},"value":[1020,"11"]}]}}`},
		{`sum by (source_id) (cpu{source_id="a"})`, "1285.5", `200 {"status":"success","data":{"resultType":"vector","result":[{"metric":{"source_id":"a"},"value":[1285.5,"48"]}]}}`},
		{`avg_over_time(cpu{source_id="a",instance_id="0"}[1m])`, "1285", `200 {"status":"success","data":{"resultType":"vector","result":[{"metric":{"instance_id":"0","origin":"rep","process_type":"web","source_id":"a"},"value":[1285,"17.5"]}]}}`},
		{`count_over_time(http{source_id="a",status_code="500"}[30s])`, "1059", `200 {"status":"success","data":{"resultType":"vector","result":[{"metric":{"instance_id":"0","source_id":"a","status_code":"500"},"value":[1059,"15"]}]}}`},
		{`http_latency{source_id=~"a|b",instance_id="0"}`, "1970-01-01T00:16:40Z", `200 {"status":"success","data":{"resultType":"vector","result":[{"metric":{"__name__":"http_latency","instance_id":"0","origin":"rep","process_type":"web","source_id":"a"},"value":[1000,"7"]}]}}`},
		{`max(cpu{source_id=~".+"})`, "1285", `200 {"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1285,"29"]}]}}`},
		{`cpu{source_id="a"}`, "2000", `200 {"status":"success","data":{"resultType":"vector","result":[]}}`},
		{`cpu{source_id="theirs"}`, "1020", hidden},
		{`cpu{source_id=~"a|theirs"}`, "1020", hidden},
		{`cpu`, "1020", `400 {"status":"error","errorType":"bad_data","error":"Metric 'cpu' does not have a 'source_id' label."}`},
		{`cpu{source_id!="a"}`, "1020", `400 {"status":"error","errorType":"bad_data","error":"Metric 'cpu' does not have a 'source_id' label."}`},
		{`1 + 1`, "1020", `200 {"status":"success","data":{"resultType":"scalar","result":[1020,"2"]}}`},
		{`vector(1)+vector(1)`, "1020", `200 {"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1020,"2"]}]}}`},
		{`cpu{source_id=~"theirs.*"}`, "1020", `200 {"status":"success","data":{"resultType":"vector","result":[]}}`},
		{`cpu{source_id="a"}`, "soon", `400 {"status":"error","errorType":"bad_data","error":"cannot parse \"soon\" of \"time\" to a valid timestamp"}`},
		{`cpu{`, "1020", `400 {"status":"error","errorType":"bad_data","error":"1:5: parse error: unexpected end of input inside braces"}`},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, ask(c, "query", "query", tt.query, "time", tt.at)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.query, diff)
		}
	}
}

func TestRange(t *testing.T) {
	c := measured()
	tests := []struct{ query, start, end, step, want string }{
		{`cpu{source_id="a",instance_id="0"}`, "1000", "1030", "15s", `200 {"status":"success","data":{"resultType":"matrix","result":[{"metric":{"__name__":"cpu","instance_id":"0","origin":"rep","process_type":"web","source_id":"a"},"values":[[1000,"0"],[1015,"1"],[1030,"2"]]}]}}`},
		{`rate(cpu{source_id="a",instance_id="0"}[1m])`, "1060", "1060", "1", `200 {"status":"success","data":{"resultType":"matrix","result":[{"metric":{"instance_id":"0","origin":"rep","process_type":"web","source_id":"a"},"values":[[1060,"0.06666666666666665"]]}]}}`},
		{`sum(rate(missing{source_id="a"}[1m]))`, "1000", "1030", "15s", `200 {"status":"success","data":{"resultType":"matrix","result":[]}}`},
		{`cpu{source_id="a"}`, "1030", "1000", "1", `400 {"status":"error","errorType":"bad_data","error":"end timestamp must not be before start time"}`},
		{`cpu{source_id="a"}`, "0", "11001", "1", `400 {"status":"error","errorType":"bad_data","error":"exceeded maximum resolution of 11,000 points per timeseries. Try decreasing the query resolution (?step=XX)"}`},
		{`cpu{source_id="a"}`, "0", "1", "0", `400 {"status":"error","errorType":"bad_data","error":"zero or negative query resolution step widths are not accepted. Try a positive integer"}`},
		{`cpu{source_id="a"}`, "", "1", "1", `400 {"status":"error","errorType":"bad_data","error":"cannot parse \"\" of \"start\" to a valid timestamp"}`},
		{`cpu{source_id="theirs"}`, "1000", "1030", "15s", hidden},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, ask(c, "query_range", "query", tt.query, "start", tt.start, "end", tt.end, "step", tt.step)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.query, diff)
		}
	}
}

func FuzzSpan(f *testing.F) {
	f.Add("1000", "2026-11-21T00:00:00Z", "1m")
	f.Add("1e300", "-1", "NaN")
	f.Fuzz(func(t *testing.T, start, end, step string) {
		fields := map[string]string{"start": start, "end": end, "step": step}
		s, err := parseRange(form{func(name string) string { return fields[name] }, time.Unix(0, 0)})
		if err == nil && (s.step <= 0 || s.end.Before(s.start)) {
			t.Fatalf("got %+v", s)
		}
	})
}
