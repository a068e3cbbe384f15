package databroker

import (
	"context"
	"slices"
	"strings"
	"sync"

	"cupola/runtime/fault"
	"cupola/server/osb/builtin"
)

// Service is the broker as a daemon has it. Nil, as where it is off, has nothing.
type Service struct {
	broker     *broker
	registered *builtin.Broker

	mu       sync.Mutex
	prepared []string // the services that the catalog said are prepared
}

// Name is the name by which the built-in broker is registered.
const Name = "cupola"

// Open opens the broker, registers it as any broker is, and listens where its
// registration says.
func Open(ctx context.Context, c Config) (*Service, error) {
	b := newBroker(c)
	if err := b.loadScrubbers(ctx); err != nil {
		return nil, err
	}
	registered, err := builtin.Open(ctx, builtin.Config{Name: Name, Setting: "data_broker", Store: c.Store, Log: c.Log})
	if err != nil {
		return nil, err
	}
	s := &Service{broker: b, registered: registered, prepared: Prepared(c.HasFile)}
	s.use(ctx, Load(c.Services))
	return s, nil
}

// offered are the names of the built-in services that are offered.
func (s *Service) offered() []string {
	o := s.Offer()
	return slices.DeleteFunc(slices.Clone(o.Names), func(name string) bool { return !o.offers(name) })
}

// use offers other services.
func (s *Service) use(ctx context.Context, o Offer) {
	for _, fault := range o.Faults {
		s.broker.Log.ErrorContext(ctx, "service file of --data-services is wrong", "err", fault)
	}
	s.broker.offer.Store(&o)
	if missing := Missing(s.offered(), s.broker.HasFile); len(missing) > 0 {
		s.broker.Log.WarnContext(ctx, "services of --data-services are not prepared", "services", strings.Join(missing, ","), "fix", PrepareCommand(missing...))
	}
}

// Offer is what the broker offers.
func (s *Service) Offer() Offer {
	if s == nil {
		return Offer{}
	}
	return *s.broker.offer.Load()
}

// Reload offers these services, if there are any, and reads the operator's files of them again. Those that are wrong change nothing.
func (s *Service) Reload(ctx context.Context, services []string) {
	if s == nil || len(services) == 0 {
		return
	}
	o := Load(services)
	o.keepWrong(s.Offer())
	s.use(ctx, o)
	if err := s.registered.ReadCatalog(ctx); err != nil {
		s.broker.Log.WarnContext(ctx, "catalog of the built-in service broker was not refreshed", "err", err)
	}
}

// Refresh makes the platform read the catalog again, if the prepared services changed
// since. It returns when that is done: until then no service instance can be created.
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
	if err := s.registered.ReadCatalog(ctx); err != nil {
		s.broker.Log.WarnContext(ctx, "catalog of the built-in service broker was not refreshed", "err", err)
		return
	}
	s.prepared = now
}

// Mounts reports whether a broker's volumes are here: those of the built-in one
// are.
func (s *Service) Mounts(brokerGUID string) bool {
	return s != nil && brokerGUID != "" && brokerGUID == s.registered.GUID
}

// Start runs all of it in a group until ctx ends.
func (s *Service) Start(ctx context.Context, group *fault.Group) {
	if s == nil {
		return
	}
	s.registered.Start(ctx, group, s.broker.handler())
	group.Go(fault.Loop(ctx, "dataservices", s.broker.keepScrubbers))
	group.Go(fault.Loop(ctx, "dataservices", s.broker.keepDashboards))
	group.Go(fault.Loop(ctx, "databroker", s.broker.run))
}

// Close closes the listener, which serving has closed if it did.
func (s *Service) Close() {
	if s != nil {
		s.registered.Close()
	}
}
