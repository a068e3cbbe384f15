package conformance

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"cupola/runtime/lrp"
)

// Recorder takes what a cell says.
type Recorder struct {
	mu     sync.Mutex
	lines  []string
	events []lrp.Event
}

// Log takes a line of a container's log.
func (r *Recorder) Log(l lrp.LogLine) { r.Line(fmt.Sprintf("%s: %s", l.Target.Source, l.Text)) }

// Line takes a line with its source before it.
func (r *Recorder) Line(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, text)
}

// Event takes what happened to a container.
func (r *Recorder) Event(e lrp.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

// Output are the lines of all containers, each after its source.
func (r *Recorder) Output() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.lines...)
}

// Count is how many events of a type a container has had.
func (r *Recorder) Count(guid string, of lrp.EventType) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.events {
		if e.GUID == guid && e.Type == of {
			n++
		}
	}
	return n
}

// Exit is how a container ended; the zero value if it has not.
func (r *Recorder) Exit(guid string) lrp.Exit {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.events {
		if e.GUID == guid && e.Type == lrp.EventExited {
			return e.Exit
		}
	}
	return lrp.Exit{}
}

// Find waits for an event. The container does not end before it.
func (r *Recorder) Find(t testing.TB, guid string, want lrp.EventType) lrp.Event {
	t.Helper()
	var found lrp.Event
	Eventually(t, guid+" "+string(want), func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, e := range r.events {
			if e.GUID == guid && e.Type == want {
				found = e
				return true
			}
			if e.GUID == guid && e.Type == lrp.EventExited {
				t.Fatalf("%s exited: %+v; want %s; log:\n%s", guid, e.Exit, want, strings.Join(r.lines, "\n"))
			}
		}
		return false
	})
	return found
}

// WantLine waits for a line of the log that holds text.
func (r *Recorder) WantLine(t testing.TB, text string) {
	t.Helper()
	Eventually(t, text, func() bool { return strings.Contains(strings.Join(r.Output(), "\n"), text) })
}

// Eventually waits until something is so.
func Eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(2 * time.Minute); !ok(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("not in time: %s", what)
		}
	}
}
