package store

import "sync"

// feed tells watchers that tables changed. A watcher's channel holds one
// signal: one who is slow misses none of what it says, only how often.
type feed struct {
	mu       sync.Mutex
	watchers map[*watcher]bool
}

type watcher struct {
	tables map[string]bool // empty: all
	c      chan struct{}
}

func newFeed() *feed { return &feed{watchers: map[*watcher]bool{}} }

// Watch gives a channel that gets a signal after each commit that changed one
// of the tables (of any table, when none is named), and a function that ends
// it. Look at the rows after Watch and not before: then no change is missed.
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

func (f *feed) publish(changed map[string]bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for w := range f.watchers {
		if w.wants(changed) {
			select {
			case w.c <- struct{}{}:
			default:
			}
		}
	}
}

func (w *watcher) wants(changed map[string]bool) bool {
	for t := range changed {
		if len(w.tables) == 0 || w.tables[t] {
			return true
		}
	}
	return false
}
