package store

import "sync"

// Touched is a row that a commit wrote.
type Touched struct {
	Table string
	// Values are those of the watched columns, "" for NULL: of the row as it is, or
	// as it was before it was deleted. They are nil where the row stands for any
	// number of rows.
	Values []string
	Gone   bool // deleted
}

// watchers get the rows of their tables, in the order of the commits.
type watchers struct {
	mu  sync.Mutex
	all map[*watcher]bool
}

type watcher struct {
	places map[string][]int // table → places of its watched columns
	tell   func([]Touched)
}

// Watch calls tell with the rows that are written from now on, of the given tables
// with the given text columns, after each commit and in order, until stop is called.
// tell must be quick, and use no transaction: the next write waits for it.
func (s *Store) Watch(columns map[string][]string, tell func([]Touched)) (stop func()) {
	w := &watcher{places: map[string][]int{}, tell: tell}
	for table, names := range columns {
		w.places[table] = nil // report also rows of which no column is watched
		for _, name := range names {
			at := s.schema.columns[table][name]
			w.places[table] = append(w.places[table], at)
			s.compared.atLeast(table, at+1)
		}
	}
	s.watchers.mu.Lock()
	defer s.watchers.mu.Unlock()
	s.watchers.all[w] = true
	return func() {
		s.watchers.mu.Lock()
		defer s.watchers.mu.Unlock()
		delete(s.watchers.all, w)
	}
}

func (ws *watchers) publish(l *changeLog) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for w := range ws.all {
		if rows := w.pick(l.rows); len(rows) > 0 {
			w.tell(rows)
		}
	}
}

// pick returns the rows that w watches.
func (w *watcher) pick(all []rowChange) (rows []Touched) {
	for _, c := range all {
		places, ok := w.places[c.table]
		if !ok {
			continue
		}
		t := Touched{Table: c.table, Gone: c.new == nil && !c.many}
		values := c.new
		if t.Gone {
			values = c.old
		}
		for _, at := range places {
			if c.many || at >= len(values) {
				t.Values = nil
				break
			}
			text, _ := values[at].(string)
			t.Values = append(t.Values, text)
		}
		rows = append(rows, t)
	}
	return rows
}
