package fault

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// watched are the panics that f makes.
func watched(t *testing.T, f func()) (all []*Panic) {
	t.Helper()
	before := panics.watch
	defer Watch(before)
	var mu sync.Mutex
	Watch(func(p *Panic) {
		mu.Lock()
		defer mu.Unlock()
		all = append(all, p)
	})
	f()
	mu.Lock()
	defer mu.Unlock()
	return slices.Clone(all) // what f began may still end
}

func crash() { panic("broken") }

func TestGuardMakesPanicAnError(t *testing.T) {
	count := Counts()["part"]
	var err error
	all := watched(t, func() { err = Guard("part", func() error { crash(); return nil }) })
	var p *Panic
	if !errors.As(err, &p) || err.Error() != "panic: broken" || len(all) != 1 || all[0] != p || p.Part != "part" {
		t.Errorf("got %v and told %v; want one panic of part", err, all)
	}
	if !strings.Contains(string(p.Stack), "fault.crash") {
		t.Errorf("got the stack %s; want where it panicked", p.Stack)
	}
	if got := Counts()["part"]; got != count+1 {
		t.Errorf("got %d panics; want %d", got, count+1)
	}
	want := errors.New("ordinary")
	if err := Guard("part", func() error { return want }); !errors.Is(err, want) {
		t.Errorf("got %v; want %v", err, want)
	}
}

func TestGoEndsNothingElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := watched(t, func() {
			Go("part", crash)
			synctest.Wait()
		})
		if len(all) != 1 {
			t.Errorf("got %d panics; want 1", len(all))
		}
	})
}

func TestLoopBeginsAgainLaterAndLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, runs := time.Now(), []time.Duration{}
		done := errors.New("done")
		all := watched(t, func() {
			err := Loop(t.Context(), "part", func(context.Context) error {
				runs = append(runs, time.Since(began))
				switch len(runs) {
				case 1, 2:
					crash()
				case 3:
					return done
				}
				return nil
			})()
			if err != nil {
				t.Errorf("got %v; want none", err)
			}
			if err := Loop(t.Context(), "part", func(context.Context) error { return done })(); !errors.Is(err, done) {
				t.Errorf("got %v; want %v", err, done)
			}
		})
		want := []time.Duration{0, pauseMin, 3 * pauseMin, 7 * pauseMin}
		for n := range want {
			if len(runs) != len(want) || runs[n] != want[n] {
				t.Fatalf("got runs at %v; want %v", runs, want)
			}
		}
		if len(all) != 3 {
			t.Errorf("got %d panics; want 3", len(all))
		}
	})
}

func TestLoopEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		watched(t, func() {
			if err := Loop(ctx, "part", func(context.Context) error { cancel(); crash(); return nil })(); err != nil {
				t.Errorf("got %v; want none", err)
			}
		})
	})
}

func TestHandlerBreaksOffAndServesOthers(t *testing.T) {
	var panics []*Panic
	srv := httptest.NewServer(Handler("part", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/panic":
			_, _ = w.Write([]byte("half"))
			crash()
		case "/abort":
			panic(http.ErrAbortHandler)
		}
	})))
	defer srv.Close()
	panics = watched(t, func() {
		for _, path := range []string{"/panic", "/abort"} {
			if resp, err := http.Get(srv.URL + path); err == nil {
				resp.Body.Close()
				t.Errorf("%s: got an answer; want the connection broken off", path)
			}
		}
		resp, err := http.Get(srv.URL)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Errorf("got %v, %v; want the next request served", resp, err)
		}
	})
	if len(panics) != 1 {
		t.Errorf("got %d panics told; want 1", len(panics))
	}
}
