package store

import "sync"

// feed tells watchers that tables changed. A watcher's channel holds one
// signal: one who is slow misses none of what it says, only how often.
type feed struct {
	mu       sync.Mutex
	watchers map[*watcher]bool
	reads    map[*Reads]bool
}

type watcher struct {
	tables map[string]bool // empty: all
	c      chan struct{}
}

func newFeed() *feed { return &feed{watchers: map[*watcher]bool{}, reads: map[*Reads]bool{}} }

// Watch gives a channel that gets a signal after each commit that changed one
// of the tables (of any table, when none is named), be it by a foreign key or a
// trigger, and a function that ends it. Look at the rows after Watch and not before: then no change is missed.
func (s *Store) Watch(tables ...string) (changed <-chan struct{}, stop func()) {
	w := &watcher{tables: map[string]bool{}, c: make(chan struct{}, 1)}
	for _, t := range tables {
		w.tables[t] = true
	}
	s.feed.mu.Lock()
	defer s.feed.mu.Unlock()
	s.feed.watchers[w] = true
	return w.c, func() {
		s.feed.mu.Lock()
		defer s.feed.mu.Unlock()
		delete(s.feed.watchers, w)
	}
}

func (f *feed) publish(l *changeLog) {
	if len(l.rows) == 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for r := range f.reads {
		r.changes(l.rows)
	}
	for w := range f.watchers {
		if w.wants(l.tables) {
			select {
			case w.c <- struct{}{}:
			default:
			}
		}
	}
}

func (w *watcher) wants(changed map[string]int) bool {
	for t := range changed {
		if len(w.tables) == 0 || w.tables[t] {
			return true
		}
	}
	return false
}
