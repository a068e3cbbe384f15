package console

import (
	"context"
	"log/slog"
	"sync"

	"cupola/runtime/fault"
	"cupola/store"
)

// live are the streams that are open, by session.
type live struct {
	mu   sync.Mutex
	open map[string]map[*stream]bool
	of   map[string]int // streams by user
}

// stream is a response that ends with its session.
type stream struct {
	user  string
	end   context.CancelFunc
	check chan struct{} // holds one token when rights may have changed
}

// maxStreams is how many streams and terminals a user may have open.
const maxStreams = 20

// begin registers a stream of a session. ok is false when its user has too many.
func (l *live) begin(ctx context.Context, session, user string) (s *stream, _ context.Context, ok bool) {
	ctx, cancel := context.WithCancel(ctx)
	s = &stream{user: user, end: cancel, check: make(chan struct{}, 1)}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of[user] >= maxStreams {
		cancel()
		return nil, nil, false
	}
	if l.of == nil {
		l.of = map[string]int{}
	}
	l.of[user]++
	if l.open[session] == nil {
		l.open[session] = map[*stream]bool{}
	}
	l.open[session][s] = true
	return s, ctx, true
}

func (l *live) finish(session string, s *stream) {
	s.end()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of[s.user]--; l.of[s.user] == 0 {
		delete(l.of, s.user)
	}
	delete(l.open[session], s)
	if len(l.open[session]) == 0 {
		delete(l.open, session)
	}
}

// authorityChanged makes every stream check its rights again.
func (l *live) authorityChanged() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, streams := range l.open {
		for s := range streams {
			select {
			case s.check <- struct{}{}:
			default:
			}
		}
	}
}

// whileAllowed ends a stream once check no longer allows it. ctx is the stream's.
func (c *Console) whileAllowed(ctx context.Context, s *stream, check func(*store.Tx) (bool, error)) {
	fault.Go("console", func() {
		for {
			select {
			case <-s.check:
			case <-ctx.Done():
				return
			case <-c.Stop.Done():
				s.end()
				return
			}
			var ok bool
			err := c.Store.Read(ctx, func(tx *store.Tx) (err error) {
				ok, err = check(tx)
				return err
			})
			if err != nil && ctx.Err() == nil {
				c.Log.ErrorContext(ctx, "rights of a console's stream not read", slog.Any("err", err))
			}
			if err != nil || !ok {
				s.end()
				return
			}
		}
	})
}
