package front

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"

	"cupola/runtime/fault"
	"cupola/server/router"
)

// Server answers the clients of listeners.
type Server struct {
	http   *http.Server
	coming arrivals
	open   sync.WaitGroup // the listeners
	log    *slog.Logger
}

// NewServer makes one. What endPolls answers are requests that wait for news: the
// drain would wait for them.
func NewServer(h http.Handler, endPolls func(), log *slog.Logger) *Server {
	s := &Server{http: router.NewServer(h, log, router.Timeouts{}), log: log}
	s.http.RegisterOnShutdown(endPolls)
	s.coming.watch(s.http)
	fault.Hooks("server", s.http)
	return s
}

// Start serves listeners in a group, which are closed once ctx ends.
func (s *Server) Start(ctx context.Context, group *fault.Group, listeners []net.Listener) {
	for _, l := range listeners {
		s.open.Add(1)
		group.Go(fault.ErrFunc("server", func() error {
			defer s.open.Done()
			err := s.http.Serve(fault.Listener("server", l))
			if errors.Is(err, http.ErrServerClosed) || errors.Is(err, net.ErrClosed) && ctx.Err() != nil {
				return nil
			}
			return err
		}))
	}
}

// Close takes no new connections, and waits for those that have come: until TLS
// has been agreed on with them, and they have said what they want.
func (s *Server) Close(listeners []net.Listener) {
	var errs []error
	for _, l := range listeners {
		errs = append(errs, l.Close())
	}
	if err := errors.Join(errs...); err != nil {
		s.log.Warn("listeners not closed", "err", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), arrivalTime)
	defer cancel()
	shut := make(chan struct{})
	fault.Go("server", func() {
		s.open.Wait()
		close(shut)
	})
	select {
	case <-shut:
	case <-ctx.Done():
	}
	s.coming.wait(ctx)
}

// Drain lets requests in flight finish until ctx ends, and takes no new ones.
func (s *Server) Drain(ctx context.Context) {
	if err := s.http.Shutdown(ctx); err != nil {
		s.log.Warn("requests cut off", "err", err)
		s.http.Close()
	}
}
