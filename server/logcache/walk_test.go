package logcache

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// cliDelay is how old the CLI wants a line (actor/sharedaction/logging.go: WithWalkDelay).
const cliDelay = 2 * time.Second

// reader is the CLI's walk (go-log-cache: walk.go).
type reader struct {
	t       *testing.T
	handler http.Handler
	start   int64
	shown   []string
}

func newReader(t *testing.T, c *Cache, start time.Time) *reader {
	return &reader{t: t, handler: c.Handler(refuseSecret), start: start.UnixNano()}
}

// get makes a request and returns the batch.
func (r *reader) get(agent, query string) []envelopeView {
	req := httptest.NewRequest(http.MethodGet, "/api/v1/read/app?"+query, nil)
	req.Header.Set("User-Agent", agent)
	w := httptest.NewRecorder()
	r.handler.ServeHTTP(w, req)
	var answer readAnswer
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
		r.t.Error(err)
		return nil
	}
	return answer.Envelopes.Batch
}

func (e envelopeView) time(t *testing.T) int64 {
	ns, err := strconv.ParseInt(e.Timestamp, 10, 64)
	if err != nil {
		t.Error(err)
	}
	return ns
}

// read reads once, and reports whether anything was shown.
func (r *reader) read() bool {
	batch := r.get("cf/8.18.4+abc (go1.25; amd64 linux)", fmt.Sprintf("envelope_types=LOG&start_time=%d", r.start))
	young := time.Now().Add(-cliDelay).UnixNano()
	for n := len(batch); n > 0 && batch[n-1].time(r.t) > young; n-- {
		batch = batch[:n-1]
	}
	for _, e := range batch {
		r.shown = append(r.shown, string(e.Log.Payload))
	}
	if len(batch) > 0 {
		r.start = batch[len(batch)-1].time(r.t) + 1
	}
	return len(batch) > 0
}

// walk reads as the CLI does until the time has passed.
func (r *reader) walk(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); {
		if !r.read() {
			time.Sleep(250 * time.Millisecond)
		}
	}
}

func write(c *Cache, source, text string) {
	e := line("app", time.Now().UnixNano(), text)
	e.Tags = map[string]string{"source_type": source}
	c.Append(e)
	time.Sleep(time.Millisecond)
}

// A walk shows staging lines at once, all others when they are old enough, and each once.
func TestWalk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(Config{})
		write(c, "API", "created")
		time.Sleep(5 * time.Second)
		r := newReader(t, c, time.Now().Add(-6*time.Second))
		steps := []struct {
			write [][2]string // source and text
			walk  time.Duration
			want  []string // shown since the last step
		}{
			{nil, time.Millisecond, []string{"created"}},
			{[][2]string{{"STG", "s1"}, {"APP/PROC/WEB", "a1"}}, 300 * time.Millisecond, []string{"s1"}},
			{[][2]string{{"STG", "s2"}, {"APP/PROC/WEB", "a2"}}, 300 * time.Millisecond, []string{"a1", "s2"}},
			{nil, time.Second, nil},
			{[][2]string{{"STG", "s3"}}, time.Second, []string{"a2", "s3"}},
			{[][2]string{{"APP/PROC/WEB", "a3"}}, time.Second, nil},
			{nil, 3 * time.Second, []string{"a3"}},
			{nil, time.Minute, nil},
			{[][2]string{{"STG", "s4"}, {"STG", "s5"}}, time.Second, []string{"s4", "s5"}},
		}
		for i, s := range steps {
			r.shown = nil
			for _, w := range s.write {
				write(c, w[0], w[1])
			}
			if r.walk(s.walk); !cmp.Equal(r.shown, s.want) {
				t.Errorf("step %d: got %q; want %q", i, r.shown, s.want)
			}
		}
	})
}

// Other clients get lines when they ask, with their own times.
func TestWalkOfOtherClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(Config{})
		at := time.Now().UnixNano()
		write(c, "STG", "s")
		r := newReader(t, c, time.Now())
		for agent, query := range map[string]string{
			"curl/8": "envelope_types=LOG&start_time=1", "cf/8.18.4": "envelope_types=LOG&limit=1000&descending=true",
		} {
			if got := r.get(agent, query); len(got) != 1 || got[0].time(t) != at {
				t.Errorf("%s: got %v; want the line at %d", agent, got, at)
			}
		}
	})
}

// Shown returns when a walk has asked for more than the last staging line.
func TestShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(Config{})
		if c.Shown(t.Context(), "app", time.Time{}) {
			t.Error("a walk is known before there was any")
		}
		write(c, "API", "created")
		r := newReader(t, c, time.Now().Add(-time.Second))
		r.get("cf8/8.18.4", "limit=1&descending=true") // as a walk begins
		write(c, "STG", "s")
		done := make(chan bool)
		go func() { done <- c.Shown(t.Context(), "app", time.Time{}) }()
		synctest.Wait()
		select {
		case <-done:
			t.Error("Shown did not wait for a walk that begins")
		default:
		}
		if !r.read() {
			t.Error("the walk has not shown the line")
		}
		synctest.Wait()
		select {
		case <-done:
			t.Error("Shown did not wait until the walk has asked again")
		default:
		}
		var reading sync.WaitGroup
		reading.Go(func() { r.read() })
		if !<-done {
			t.Error("Shown knows no walk")
		}
		reading.Wait()
		if !cmp.Equal(r.shown, []string{"created", "s"}) {
			t.Errorf("got %q", r.shown)
		}
	})
}

// A walk may read what one before it has read a moment ago: Shown does not wait for that one.
func TestShownOfLaterWalk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(Config{})
		start := time.Now()
		write(c, "STG", "first")
		newReader(t, c, start).walk(time.Second)
		second := newReader(t, c, start)
		second.get("cf/8.18.4", "limit=1&descending=true")
		go second.walk(time.Second)
		time.Sleep(time.Millisecond)
		write(c, "STG", "second")
		synctest.Wait()
		began := time.Now()
		if c.Shown(t.Context(), "app", time.Time{}); time.Since(began) > 0 || !cmp.Equal(second.shown, []string{"first", "second"}) {
			t.Errorf("Shown waited %s for %q", time.Since(began), second.shown)
		}
		time.Sleep(2 * time.Second)
	})
}

// A staging that takes no time is over before the walk has begun.
func TestShownBeforeTheWalk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(Config{})
		began := time.Now()
		write(c, "STG", "s")
		r := newReader(t, c, began)
		go func() {
			time.Sleep(walkSoon / 2)
			r.get("cf/8.18.4", "limit=1&descending=true")
			r.walk(time.Second)
		}()
		if !c.Shown(t.Context(), "app", began) || !cmp.Equal(r.shown, []string{"s"}) {
			t.Errorf("got %q", r.shown)
		}
		time.Sleep(2 * time.Second)
		now := time.Now()
		if c.Shown(t.Context(), "none", now); time.Since(now) != walkSoon {
			t.Errorf("waited %s for a walk that does not come; want %s", time.Since(now), walkSoon)
		}
		if c.Shown(t.Context(), "none", now); time.Since(now) != walkSoon {
			t.Error("waited for the walk of an older build")
		}
	})
}

// Shown does not wait for long for a walk that reads no more.
func TestShownOfEndedWalk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(Config{})
		r := newReader(t, c, time.Now())
		var reading sync.WaitGroup
		reading.Go(func() { r.read() })
		time.Sleep(time.Millisecond)
		write(c, "STG", "s")
		reading.Wait()
		began := time.Now()
		c.Shown(t.Context(), "app", time.Time{})
		if took := time.Since(began); took > walkIdle {
			t.Errorf("Shown waited %s", took)
		}
		time.Sleep(walkKept + time.Second)
		r.read()
		if n := len(c.walks.of["app"].all); n != 1 {
			t.Errorf("%d walks are kept; want 1", n)
		}
	})
}
