package front

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestHealth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var broken error
		looks := 0
		h := &Health{Works: func(context.Context) error { looks++; return broken }}
		expect := func(status int, says string) {
			t.Helper()
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest("GET", healthPath, nil))
			if got := strings.TrimSpace(w.Body.String()); w.Code != status || got != says {
				t.Errorf("got %d %s; want %d %s", w.Code, got, status, says)
			}
		}
		expect(http.StatusServiceUnavailable, "starting")
		h.Ready()
		for range 10 {
			expect(http.StatusOK, "ok")
		}
		if looks != 1 {
			t.Errorf("looked %d times at once", looks)
		}
		broken = errors.New("disk I/O error")
		time.Sleep(healthEvery + 1)
		expect(http.StatusServiceUnavailable, "the database cannot be written")
		broken = nil
		time.Sleep(healthEvery + 1)
		expect(http.StatusOK, "ok")
		h.Drain()
		expect(http.StatusServiceUnavailable, "draining")
		h.Ready()
		expect(http.StatusServiceUnavailable, "draining")
	})
}

func TestHealthIsNoRouteOfApps(t *testing.T) {
	for _, tt := range []struct {
		path, agent, host string
		want              bool
	}{
		{healthPath, "", "10.0.0.1", true}, {healthPath, "", "[::1]:80", true}, {"/", monitorAgent, "localhost:8080", true},
		{"/", "", "10.0.0.1", false}, {healthPath, "", "app.example.com", false}, {"/", monitorAgent, "app.example.com", false},
	} {
		r := httptest.NewRequest("GET", tt.path, nil)
		r.Host = tt.host
		r.Header.Set("User-Agent", tt.agent)
		if got := isMachine(r.Host) && isHealth(r); got != tt.want {
			t.Errorf("%+v: got %t", tt, got)
		}
	}
}
