package loggregator

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cupola/runtime/cell"
	"cupola/runtime/lrp"
	"cupola/server/logcache"
	"cupola/server/logstream"
	"cupola/server/router"
	"cupola/store"
)

// Streams get Diego's three gauges of a container (diego-logging-client:
// SendAppMetrics, SendAppLogRate) and all tags of a request (go-loggregator:
// conversion/tov2.go); the log cache has one gauge, and timers with few tags.
func TestWhatStreamsGet(t *testing.T) {
	s, _ := speaking(t)
	stop, cancel := context.WithCancel(t.Context())
	defer cancel()
	srv := httptest.NewServer(logstream.New(logstream.Config{Hub: &s.Hub, Cache: s.Cache, Store: s.Store, Stop: stop, Log: s.Log, Authorize: func(*http.Request) (logstream.Reader, error) {
		return logstream.Reader{GUID: "nozzle", May: func(*store.Tx, []string, []string) (bool, error) { return true, nil }}, nil
	}}))
	defer srv.Close()
	defer cancel() // first: the stream ends
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL+"/v2/read?gauge&timer", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := srv.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	for !s.Hub.Wanted() {
		time.Sleep(time.Millisecond)
	}
	s.gauge(cell.Measured{Log: lrp.LogTarget{GUID: "app-1", Instance: "3"}}, time.Now())
	request := httptest.NewRequest(http.MethodPatch, "http://shop.example.com/cart?secret=1", nil)
	request.Header = http.Header{"User-Agent": {"curl"}, "X-Forwarded-For": {"192.0.2.1, 192.0.2.2"}}
	s.Access(router.AccessEntry{AppGUID: "app-1", InstanceGUID: "i-3", Index: "3", At: time.Now(), Request: request, ID: "r-1", Status: 204, Written: 9})

	type envelope struct {
		InstanceID string `json:"instance_id"`
		Tags       map[string]string
		Gauge      *struct{ Metrics map[string]any }
		Timer      *struct{ Name string }
	}
	var got []envelope
	for in := bufio.NewScanner(res.Body); len(got) < 4 && in.Scan(); {
		if data, ok := strings.CutPrefix(in.Text(), "data: {"); ok {
			var batch struct{ Batch []envelope }
			if err := json.Unmarshal([]byte("{"+data), &batch); err != nil {
				t.Fatal(err)
			}
			got = append(got, batch.Batch...)
		}
	}
	if len(got) != 4 {
		t.Fatalf("got %+v", got)
	}
	for n, want := range []string{"cpu disk disk_quota memory memory_quota", "absolute_entitlement absolute_usage container_age cpu_entitlement", "log_rate log_rate_limit"} {
		var names []string
		for name := range got[n].Gauge.Metrics {
			names = append(names, name)
		}
		slices.Sort(names)
		if strings.Join(names, " ") != want || got[n].InstanceID != "3" {
			t.Errorf("gauge %d has %v; want %s", n, names, want)
		}
	}
	want := map[string]string{"origin": "gorouter", "deployment": "cf", "job": "router", "index": "0", "ip": "127.0.0.1", "__v1_type": "HttpStartStop", "peer_type": "Server", "method": "PATCH",
		"request_id": "r-1", "uri": "http://shop.example.com/cart", "remote_address": request.RemoteAddr, "user_agent": "curl", "status_code": "204", "content_length": "9",
		"routing_instance_id": "i-3", "forwarded": "192.0.2.1\n192.0.2.2"}
	if d := cmp.Diff(want, got[3].Tags); d != "" || got[3].Timer == nil || got[3].Timer.Name != "http" {
		t.Errorf("the timer: %s", d)
	}
	if kept := s.last(t, logcache.Gauge); len(kept.Metrics) != 11 {
		t.Errorf("the cache has %d metrics of the container", len(kept.Metrics))
	}
	if kept := s.last(t, logcache.Timer); len(kept.Tags) != 4 {
		t.Errorf("the cache has the timer's tags %v", kept.Tags)
	}
}
