package h2

import (
	"sync"
	"time"

	"cupola/runtime/fault"
)

// crew are the goroutines that serve requests of all connections. They are kept for a while: a
// new one would have to grow its stack again.
type crew struct {
	mu       sync.Mutex
	idle     []chan *Stream // the one that was idle last is the last
	least    int            // how many were idle all the time since the last sweep
	sweeping bool
}

var workers crew

// maxIdle workers are kept.
const maxIdle = 256

// sweepTime is how long a worker is kept at least that has nothing to do.
const sweepTime = time.Second

// serve serves a stream.
func (w *crew) serve(s *Stream) {
	if idle := w.pop(); idle != nil {
		idle <- s
		return
	}
	fault.Go("router", func() {
		turn := make(chan *Stream, 1)
		for s := s; s != nil; s = <-turn {
			s.serve()
			if !w.push(turn) {
				return
			}
		}
	})
}

func (w *crew) pop() chan *Stream {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := len(w.idle)
	if n == 0 {
		return nil
	}
	idle := w.idle[n-1]
	w.idle = w.idle[:n-1]
	w.least = min(w.least, n-1)
	return idle
}

func (w *crew) push(idle chan *Stream) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.idle) >= maxIdle {
		return false
	}
	w.idle = append(w.idle, idle)
	if !w.sweeping {
		w.sweeping, w.least = true, 0
		time.AfterFunc(sweepTime, fault.Func("router", w.sweep))
	}
	return true
}

// sweep ends the workers that nothing needed since the last sweep.
func (w *crew) sweep() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, idle := range w.idle[:w.least] {
		close(idle)
	}
	rest := copy(w.idle, w.idle[w.least:])
	clear(w.idle[rest:])
	w.idle = w.idle[:rest]
	w.least = rest
	if w.sweeping = rest > 0; w.sweeping {
		time.AfterFunc(sweepTime, fault.Func("router", w.sweep))
	}
}

// serve answers the request.
func (s *Stream) serve() {
	defer s.finish()
	if s.refused != 0 {
		s.refuse()
		return
	}
	s.conn.config.Serve(s)
}
