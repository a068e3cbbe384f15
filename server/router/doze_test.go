package router

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// dozing lets the site's app sleep; wakes counts how often it was woken.
func (s *site) dozing(t *testing.T, wake func() error) (wakes *atomic.Int32) {
	t.Helper()
	wakes = new(atomic.Int32)
	s.SetWake(func(_ context.Context, app string) error {
		wakes.Add(1)
		if app != appGUID {
			t.Errorf("got a wake of %q; want one of %q", app, appGUID)
		}
		return wake()
	})
	if !s.Doze(appGUID, time.Now()) {
		t.Fatal("the app does not fall asleep")
	}
	return wakes
}

// forwarded forwards what comes to net/http.
func forwarded(s **site) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { (*s).ServeHTTP(w, r) }
}

// TestHeldRequests wakes a frozen app, whose endpoints are known, directly, and a stopped
// one by net/http, since nothing is known of its endpoints; once for all requests.
func TestHeldRequests(t *testing.T) {
	for _, stopped := range []bool{false, true} {
		t.Run(fmt.Sprintf("stopped %t", stopped), func(t *testing.T) {
			var s *site
			var slow atomic.Int32
			s, _ = directSite(t, Config{}, func(w http.ResponseWriter, r *http.Request) {
				slow.Add(1)
				forwarded(&s)(w, r)
			})
			there := route("a.test", app(t, "one", 0, func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				fmt.Fprintf(w, "one got %s", body)
			}))
			table := Table{Routes: []Route{there}}
			s.Set(table)
			proceed := make(chan struct{})
			wakes := s.dozing(t, func() error {
				<-proceed
				if stopped {
					s.Set(table)
				}
				return nil
			})
			if stopped {
				away := there
				away.Endpoints = nil
				s.Set(Table{Routes: []Route{away}})
			}
			var answers sync.WaitGroup
			for n := range 20 {
				answers.Go(func() {
					body := strings.Repeat("x", 1+n)
					req, err := http.NewRequestWithContext(t.Context(), "POST", "http://"+s.addr+"/", strings.NewReader(body))
					if err != nil {
						t.Error(err)
						return
					}
					req.Host = "a.test"
					res, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
					if err != nil {
						t.Error(err)
						return
					}
					defer res.Body.Close()
					if got, err := io.ReadAll(res.Body); string(got) != "one got "+body || res.StatusCode != 200 {
						t.Errorf("got %d %q, %v; want all of the body answered", res.StatusCode, got, err)
					}
				})
			}
			for d := s.dozeOf(appGUID); d.n.Load() < 20; {
				time.Sleep(time.Millisecond)
			}
			close(proceed)
			answers.Wait()
			if got := wakes.Load(); got != 1 {
				t.Errorf("got %d wakes; want 1", got)
			}
			if got := slow.Load() > 0; got != stopped {
				t.Errorf("got %d requests by net/http", slow.Load())
			}
			if s.Asleep(appGUID) || time.Since(s.IdleSince(appGUID)) > time.Minute {
				t.Error("the app is not awake")
			}
		})
	}
}

func TestWakeThatFails(t *testing.T) {
	for _, direct := range []bool{true, false} {
		var s *site
		if direct {
			s, _ = directSite(t, Config{}, nil)
		} else {
			s = newSite(t, Config{})
		}
		s.Set(Table{Routes: []Route{route("a.test", app(t, "one", 0, nil))}})
		var fails atomic.Bool
		fails.Store(true)
		s.dozing(t, func() error {
			if fails.Load() {
				return errors.New("it did not start within 1m0s")
			}
			return nil
		})
		path := "a.test/"
		if !direct {
			path += strings.Repeat("x", 9000) // more than is forwarded directly
		}
		got := s.get(t, path)
		if got.status != http.StatusServiceUnavailable || got.header.Get("X-Cf-Routererror") != "wake_failure (it did not start within 1m0s)" ||
			got.header.Get("Cache-Control") != "no-cache, no-store" {
			t.Errorf("direct %t: got %d, %v; want 503 with the reason", direct, got.status, got.header)
		}
		fails.Store(false)
		if got := s.get(t, path); got.body != "one" {
			t.Errorf("direct %t: got %d %q; want the next request to wake it", direct, got.status, got.body)
		}
	}
}

func TestClientLeavesBeforeTheWake(t *testing.T) {
	for _, direct := range []bool{true, false} {
		var s *site
		if direct {
			s, _ = directSite(t, Config{}, nil)
		} else {
			s = newSite(t, Config{})
		}
		s.Set(Table{Routes: []Route{route("a.test", app(t, "one", 0, nil))}})
		proceed := make(chan struct{})
		s.dozing(t, func() error { <-proceed; return nil })
		path := "/"
		if !direct {
			path += strings.Repeat("x", 9000)
		}
		conn, err := net.Dial("tcp", s.addr)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: a.test\r\n\r\n", path)
		d := s.dozeOf(appGUID)
		for d.n.Load() == 0 {
			time.Sleep(time.Millisecond)
		}
		conn.Close()
		for d.n.Load() != 0 { // before the wake ends
			time.Sleep(time.Millisecond)
		}
		close(proceed)
		for len(s.lines()) == 0 {
			time.Sleep(time.Millisecond)
		}
		if line := s.lines()[0]; !strings.Contains(line, " 499 ") {
			t.Errorf("direct %t: got %q; want 499", direct, line)
		}
	}
}

// TestDozeOnlyWhenIdle holds what keeps an app awake: a request that is answered, also
// after its answer has begun; a connection of a TCP route; a Hold; a recent request.
func TestDozeOnlyWhenIdle(t *testing.T) {
	s := newPortSite(t, PortsConfig{})
	s.lead(tcpApp(t, "one"))
	refuses := func(why string) {
		t.Helper()
		if s.Doze(appGUID, time.Now()) || s.Asleep(appGUID) {
			t.Errorf("the app falls asleep with %s", why)
		}
	}
	conn, line := s.dial()
	if line != "one" {
		t.Fatalf("got %q", line)
	}
	refuses("a TCP connection")
	if since := s.IdleSince(appGUID); time.Since(since) > time.Minute {
		t.Errorf("got idle since %v; want now", since)
	}
	conn.Close()
	for s.dozeOf(appGUID).n.Load() != 0 {
		time.Sleep(time.Millisecond)
	}
	if s.Doze(appGUID, time.Now().Add(-time.Hour)) {
		t.Error("the app falls asleep just after a connection")
	}
	release, err := s.Hold(t.Context(), appGUID)
	if err != nil {
		t.Fatal(err)
	}
	refuses("a hold")
	release()
	if !s.Doze(appGUID, time.Now()) || !s.Asleep(appGUID) {
		t.Error("the app does not fall asleep when it is idle")
	}
	if conn, line := s.dial(); line != "one" || s.Asleep(appGUID) {
		t.Errorf("got %q; want the connection to wake the app", line)
	} else {
		conn.Close()
	}
	s.Rouse(appGUID)
}

func TestStreamKeepsAwake(t *testing.T) {
	s := newSite(t, Config{})
	begun, end := make(chan struct{}), make(chan struct{})
	s.Set(Table{Routes: []Route{route("a.test", app(t, "one", 0, func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "one")
		_ = http.NewResponseController(w).Flush()
		close(begun)
		<-end
	}))}})
	var answered sync.WaitGroup
	answered.Go(func() { s.get(t, "a.test/") })
	<-begun
	if s.Doze(appGUID, time.Now()) {
		t.Error("the app falls asleep while it streams")
	}
	close(end)
	answered.Wait()
	for s.dozeOf(appGUID).n.Load() != 0 { // the books of the request are closed after its answer
		time.Sleep(time.Millisecond)
	}
	if !s.Doze(appGUID, time.Now()) {
		t.Error("the app does not fall asleep after it")
	}
}

// TestRouteOfSleepingApp holds that a route without endpoints is known while its app
// sleeps, and unknown again if it has none when it is awake.
func TestRouteOfSleepingApp(t *testing.T) {
	s := newSite(t, Config{})
	s.Set(Table{Routes: []Route{{Host: "a.test", AppGUID: appGUID}}})
	s.dozing(t, func() error { return nil })
	if got := s.get(t, "a.test/"); got.status != http.StatusNotFound {
		t.Errorf("got %d; want 404 for an app without instances", got.status)
	}
	s.Set(Table{Routes: []Route{{Host: "a.test", AppGUID: otherApp, AppGUIDs: []string{otherApp, appGUID}}}})
	wakes := s.dozing(t, func() error { return errors.New("no") })
	if got := s.get(t, "a.test/"); got.status != http.StatusServiceUnavailable || wakes.Load() != 1 {
		t.Errorf("got %d, %d wakes; want any of the apps of a route woken", got.status, wakes.Load())
	}
	s.Set(Table{})
	s.Rouse(appGUID)
	s.Set(Table{})
	if len(s.dozes) != 0 {
		t.Errorf("got %v; want apps forgotten without routes", s.dozes)
	}
}
