package logcache

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// The official CLI follows an app's log by a walk (go-log-cache: walk.go): it reads from
// a time on, discards the newest envelopes while they are younger than 2 s, shows the
// others, and reads again from behind the last one shown. `cf push` ends its walk when the
// build ends, so it would show nothing of a staging that takes 2 s. Therefore a walk gets
// young staging lines with a timestamp of walkAge ago, and Shown waits until it has them.
const (
	// walkAge is the CLI's 2 s, and what its clock may differ.
	walkAge = 2300 * time.Millisecond
	// A walk that does not read for walkIdle has ended: it reads every 250 ms.
	walkIdle = time.Second
	// walkKept is how long the position of a walk is remembered.
	walkKept = 10 * time.Second
	// A read that finds nothing is held for walkHold while a staging may write lines.
	walkHold = 500 * time.Millisecond
	// walkSoon is how long after the beginning of a build a walk may begin.
	walkSoon = 500 * time.Millisecond
	// shownAtMost bounds Shown.
	shownAtMost = 2 * time.Second
)

// sourceTag is the tag of where a line comes from; stagingSource is its value for stagings.
const (
	sourceTag     = "source_type"
	stagingSource = "STG"
)

// walks are the CLI's walks, by source.
type walks struct {
	mu sync.Mutex
	of map[string]*walked
}

// walked is a source with walks.
type walked struct {
	all  []*walk
	wake chan struct{} // closed when a staging line comes or a walk moves
}

// walk is the position of one reader.
type walk struct {
	next int64     // nanoseconds: the start_time of its next read
	from time.Time // the position of next in the log: it has not read what is there and later
	// began and read are the times of its first and last read.
	began, read time.Time
	// asked reports whether it has read with next, and so has shown all that is before.
	asked bool
	left  bool // the walk went on from here
}

// announced is the next of a walk that has asked for the newest envelope only, to find
// out where to begin.
const announced = -1

// fromCLI reports whether the official CLI asks. Its user agent is its file's name and version.
func fromCLI(r *http.Request) bool {
	name, _, _ := strings.Cut(r.UserAgent(), "/")
	return name == "cf" || name == "cf7" || name == "cf8" || name == "cf9"
}

// walks reports whether q is a read of a walk.
func (q *Query) walks() bool {
	return !q.Descending && q.End.IsZero() && q.Name == nil && slices.Equal(q.Kinds, []Kind{Log})
}

// announces reports whether q is the read before a walk.
func (q *Query) announces() bool { return q.Descending && q.Limit == 1 }

// walk is Read for a walk of the CLI.
func (c *Cache) walk(ctx context.Context, q Query) []Envelope {
	w := c.walks.enter(q.SourceID, q.Start, time.Now())
	deadline := time.Now().Add(walkHold)
	for {
		wake := c.walks.waker(q.SourceID)
		q.Start = w.from
		found := c.Read(q)
		now := time.Now()
		shown := aged(found, now)
		if len(shown) > 0 {
			c.walks.advance(q.SourceID, w, found[len(shown)-1].Timestamp, shown[len(shown)-1].Timestamp, now)
			return shown
		}
		if !c.maySoonStage(q.SourceID, w, now) || !await(ctx, wake, deadline) {
			return nil
		}
	}
}

// aged are the envelopes that a walk shows: without the newest ones that it would
// discard, and young staging lines as it takes them.
func aged(found []Envelope, now time.Time) []Envelope {
	young, end := now.Add(-walkAge), len(found)
	for end > 0 && found[end-1].Timestamp.After(young) && !found[end-1].staging() {
		end--
	}
	shown := slices.Clone(found[:end])
	for i := range shown {
		if e := &shown[i]; e.staging() && e.Timestamp.After(young) {
			e.Timestamp = e.Timestamp.Add(-walkAge)
		}
	}
	return shown
}

func (e *Envelope) staging() bool { return e.Kind == Log && e.Tags[sourceTag] == stagingSource }

// maySoonStage reports whether a staging of the source may write lines: the walk is new,
// or a staging wrote a moment ago.
func (c *Cache) maySoonStage(sourceID string, w *walk, now time.Time) bool {
	return now.Sub(w.began) < walkKept || now.Sub(c.lastStaging(sourceID)) < walkKept
}

// lastStaging is the time of the newest staging line of a source; zero if it is older than
// walkKept.
func (c *Cache) lastStaging(sourceID string) time.Time {
	lines := c.view(logShelf, sourceID, time.Now().Add(-walkKept), time.Time{})
	for e := range lines.backward() {
		if e.staging() {
			return e.Timestamp
		}
	}
	return time.Time{}
}

// await waits for wake; it returns false at the deadline and when ctx ends.
func await(ctx context.Context, wake <-chan struct{}, deadline time.Time) bool {
	t := time.NewTimer(time.Until(deadline))
	defer t.Stop()
	select {
	case <-wake:
		return true
	case <-t.C:
	case <-ctx.Done():
	}
	return false
}

// Shown waits until the CLI's walks on a source have shown all staging lines that are
// there: a build's last answer ends them. It does not wait for a walk that has ended, and
// waits for 2 s at most. It reports whether there are walks. A build that began at since may
// end before the CLI, which asks for both at once, has begun its walk: for that it waits
// walkSoon.
func (c *Cache) Shown(ctx context.Context, sourceID string, since time.Time) bool {
	deadline := time.Now().Add(shownAtMost)
	for {
		wake := c.walks.waker(sourceID)
		wait, walks := c.walks.behind(sourceID, c.lastStaging(sourceID), since, time.Now())
		if wait <= 0 || ctx.Err() != nil || !time.Now().Before(deadline) {
			return walks
		}
		await(ctx, wake, earlier(deadline, time.Now().Add(wait)))
	}
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// source is the entry of a source, which is made if it is missing. The caller holds mu.
func (w *walks) source(id string) *walked {
	s := w.of[id]
	if s == nil {
		s = &walked{wake: make(chan struct{})}
		w.of[id] = s
	}
	return s
}

// announce notes that a walk is about to begin.
func (w *walks) announce(sourceID string, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.source(sourceID)
	at := slices.IndexFunc(s.all, func(o *walk) bool { return o.next == announced })
	if at < 0 {
		s.all = append(s.all, &walk{next: announced, began: now, read: now})
		return
	}
	s.all[at].read = now
}

// enter finds the walk that reads from start, or begins one.
func (w *walks) enter(sourceID string, start, now time.Time) *walk {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.forget(now)
	s, next := w.source(sourceID), start.UnixNano()
	at := slices.IndexFunc(s.all, func(o *walk) bool { return o.next == next })
	if at < 0 {
		if at = slices.IndexFunc(s.all, func(o *walk) bool { return o.next == announced }); at < 0 {
			at = len(s.all)
			s.all = append(s.all, &walk{began: now})
		}
		s.all[at].next, s.all[at].from = next, start
	}
	found := s.all[at]
	found.read, found.asked, found.left = now, true, false
	s.signal()
	return found
}

// advance moves a walk behind an envelope, which it was shown with another timestamp.
func (w *walks) advance(sourceID string, from *walk, last, shown, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.source(sourceID)
	from.left = true
	if from.from.UnixNano() == from.next { // it can be read from again without being remembered
		s.all = slices.DeleteFunc(s.all, func(o *walk) bool { return o == from })
	}
	to := &walk{next: shown.UnixNano() + 1, from: last.Add(1), began: from.began, read: now}
	if at := slices.IndexFunc(s.all, func(o *walk) bool { return o.next == to.next }); at >= 0 {
		s.all[at] = to // of a walk that was here before
		return
	}
	s.all = append(s.all, to)
}

// behind is how long to wait at most for the walks that have not shown the line of a
// source at last, and for the first one that reads after since; 0 if there is none. It
// also reports whether there are any walks.
func (w *walks) behind(sourceID string, last, since, now time.Time) (wait time.Duration, walks bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	begun := false
	if s := w.of[sourceID]; s != nil {
		for _, o := range s.all {
			walks = walks || now.Sub(o.read) < walkIdle
			begun = begun || o.read.After(since)
			if !o.left && (!o.asked || !o.from.After(last)) {
				wait = max(wait, walkIdle-now.Sub(o.read))
			}
		}
	}
	if !begun {
		wait = max(wait, walkSoon-now.Sub(since))
	}
	return wait, walks
}

// waker is closed by the next change of a source's walks or staging lines.
func (w *walks) waker(sourceID string) <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.source(sourceID).wake
}

// signal wakes who waits for the source.
func (s *walked) signal() {
	close(s.wake)
	s.wake = make(chan struct{})
}

// appended wakes the walks on a source for a staging line.
func (w *walks) appended(e *Envelope) {
	if !e.staging() {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if s := w.of[e.SourceID]; s != nil {
		s.signal()
	}
}

// forgetEnded is forget without mu.
func (w *walks) forgetEnded(now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.forget(now)
}

// forget drops the walks that ended a while ago. The caller holds mu.
func (w *walks) forget(now time.Time) {
	for id, s := range w.of {
		s.all = slices.DeleteFunc(s.all, func(o *walk) bool { return now.Sub(o.read) > walkKept })
		if len(s.all) == 0 {
			s.signal()
			delete(w.of, id)
		}
	}
}
