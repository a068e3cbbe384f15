package databroker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"cupola/runtime/fault"
	"cupola/store"
)

// Service is the broker as a daemon has it. Nil, as where it is off, has nothing.
type Service struct {
	broker   *broker
	guid     string // of its registration
	listener net.Listener

	mu       sync.Mutex
	prepared []string // the services that the catalog said are prepared
}

// Open opens the broker, registers it as any broker is, and listens where its
// registration says. It chooses the name and password by which it is asked.
func Open(ctx context.Context, c Config) (*Service, error) {
	row, err := registration(ctx, c.Store)
	if err != nil {
		return nil, err
	}
	l, err := listenAgain(ctx, row.URL)
	if err != nil {
		return nil, err
	}
	row.URL = "http://" + l.Addr().String()
	c.Username, c.Password = row.Username, row.Password
	if err := c.Store.Write(ctx, func(tx *store.Tx) error { return register(tx, row) }); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	s := &Service{broker: newBroker(c), guid: row.GUID, listener: l, prepared: Prepared(c.HasFile)}
	if missing := Missing(c.Services, c.HasFile); len(missing) > 0 {
		s.broker.Log.WarnContext(ctx, "services of --data-services are not prepared", "services", strings.Join(missing, ","), "fix", PrepareCommand(missing...))
	}
	s.use(ctx, Load(c.Services))
	return s, nil
}

// use offers other services.
func (s *Service) use(ctx context.Context, o Offer) {
	for _, fault := range o.Faults {
		s.broker.Log.ErrorContext(ctx, "service file of --data-services is wrong", "err", fault)
	}
	s.broker.offer.Store(&o)
}

// Offer is what the broker offers.
func (s *Service) Offer() Offer {
	if s == nil {
		return Offer{}
	}
	return *s.broker.offer.Load()
}

// Reload reads the operator's service files again. Those that are wrong change nothing.
func (s *Service) Reload(ctx context.Context) {
	if s == nil {
		return
	}
	o := Load(s.broker.Services)
	o.keepWrong(s.Offer())
	s.use(ctx, o)
	if err := s.registerAgain(ctx); err != nil {
		s.broker.Log.WarnContext(ctx, "catalog of the built-in service broker was not refreshed", "err", err)
	}
}

// catalogTime is how long the platform may take to read the catalog until Refresh returns.
const catalogTime = 30 * time.Second

// Refresh has the platform read the catalog again, if other services are prepared than when it
// did last. It returns when that is done: until then no service instance can be created.
func (s *Service) Refresh(ctx context.Context) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := Prepared(s.broker.HasFile)
	if slices.Equal(now, s.prepared) {
		return
	}
	if err := s.registerAgain(ctx); err != nil {
		s.broker.Log.WarnContext(ctx, "catalog of the built-in service broker was not refreshed", "err", err)
		return
	}
	s.prepared = now
}

func (s *Service) registerAgain(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, catalogTime)
	defer cancel()
	err := s.broker.Store.Write(ctx, func(tx *store.Tx) error {
		row, err := store.ServiceBrokers.Get(tx, s.guid)
		if err != nil {
			return err
		}
		return register(tx, row)
	})
	if err != nil {
		return err
	}
	return s.broker.Store.Until(ctx, func(tx *store.Tx) (bool, error) {
		row, err := store.ServiceBrokers.Get(tx, s.guid)
		return err == nil && !row.Busy(), err
	})
}

// Mounts tells whether a broker's volumes are here: those of the built-in one
// are.
func (s *Service) Mounts(brokerGUID string) bool {
	return s != nil && brokerGUID != "" && brokerGUID == s.guid
}

// Start runs all of it in a group until ctx ends.
func (s *Service) Start(ctx context.Context, group *fault.Group) {
	if s == nil {
		return
	}
	group.Go(fault.Loop(ctx, "dataservices", s.serve))
	group.Go(fault.Loop(ctx, "dataservices", s.publishPlans))
	group.Go(fault.Loop(ctx, "databroker", s.broker.run))
}

// Close closes the listener, which serving has closed if it did.
func (s *Service) Close() {
	if s != nil {
		_ = s.listener.Close()
	}
}

// listenAgain listens on the loopback at the port of a URL, or at any other one
// where that is taken by now.
func listenAgain(ctx context.Context, was string) (net.Listener, error) {
	var lc net.ListenConfig
	if u, err := url.Parse(was); err == nil && u.Port() != "" {
		if l, err := lc.Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", u.Port())); err == nil {
			return l, nil
		}
	}
	return lc.Listen(ctx, "tcp", "127.0.0.1:0")
}

// serve answers the platform, and makes what it was promised.
func (s *Service) serve(ctx context.Context) error {
	srv := &http.Server{Handler: s.broker.handler(), ReadHeaderTimeout: 10 * time.Second, BaseContext: func(net.Listener) context.Context { return ctx }}
	stop := context.AfterFunc(ctx, func() { srv.Close() })
	defer stop()
	if err := srv.Serve(fault.Listener("dataservices", s.listener)); ctx.Err() == nil {
		return fmt.Errorf("serve the built-in service broker: %w", err)
	}
	return nil
}
