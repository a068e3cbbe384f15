package machine

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"cupola/cmd/cupola/capi"
	"cupola/cmd/cupola/command"
)

// TestStatus reads a report of an API, and shows it.
func TestStatus(t *testing.T) {
	answers := map[string]string{
		"/v1/machine": `{"version": "1.2", "hostname": "box", "cpus": 2, "cpu_used": 0.5, "load": [1, 2, 3], "memory": {"total_bytes": 4000000000, "available_bytes": 1000000000},
			"disk": {"path": "/data", "total_bytes": 10, "available_bytes": 5}, "started_at": "2026-01-01T00:00:00Z", "now": "2026-01-03T02:00:00Z", "last_backup": {"made_at": "2026-01-03T00:30:00Z", "kept": 3}}`,
		"/v1/cells":          `[{"cell_id": "one", "capacity": {"memory_mb": 1000, "containers": 250}, "used": {"memory_mb": 500, "containers": 3}, "instances": [{"state": "RUNNING"}, {"state": "RUNNING"}, {"state": "CRASHED"}]}]`,
		"/v1/alerts":         `{"resources": [{"state": "FIRING", "severity": "critical", "rule": "app-crashing", "subject": "o/s/\u001b[2Ja", "text": "it crashes"}, {"state": "RESOLVED", "rule": "old"}]}`,
		"/v1/alerts/targets": `{"resources": [{"name": "chat", "failing_since": "2026-01-03T00:30:00Z"}]}`,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if text, is := answers[r.URL.Path]; is {
			w.Write([]byte(text))
			return
		}
		w.Write([]byte(`{"pagination": {"total_results": 7}}`))
	}))
	defer server.Close()
	r, err := readReport(context.Background(), &capi.Client{API: server.URL, HTTP: server.Client()})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	writeReport(&command.Env{Out: &out, Program: "cupola"}, r)
	for _, part := range []string{"1.2 on box, up for 2d 2h", "cf login -a " + server.URL, "7 apps in 7 spaces of 7 orgs; 7 service instances", "2 running, 1 crashed", "one: 524 MB of memory given out of 1.0 GB, 3 of 250 containers",
		"[=====.....]  50 % of 2, load 1.00 2.00 3.00", " 75 % of 4.0 GB", "/data", "1h 30m ago; 3 kept", "1 firing", "critical: app-crashing, o/s/?[2Ja: it crashes", "The target chat takes no alerts"} {
		if !strings.Contains(out.String(), part) {
			t.Errorf("the screen does not say %q:\n%s", part, out.String())
		}
	}
	if strings.Contains(out.String(), "\x1b") {
		t.Errorf("a name steers the terminal: %q", out.String())
	}
}

func TestTextsOfStatus(t *testing.T) {
	for d, want := range map[time.Duration]string{50 * time.Hour: "2d 2h", 90 * time.Minute: "1h 30m", 61 * time.Second: "1m1s", -time.Second: "0s"} {
		if got := shortTime(d); got != want {
			t.Errorf("%v: got %s; want %s", int64(d), got, want)
		}
	}
	if got := bar(0.5) + bar(-1) + bar(7); got != "[=====.....][..........][==========]" {
		t.Errorf("got %s", got)
	}
}
