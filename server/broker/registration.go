package broker

import (
	"context"
	"errors"
	"maps"

	"cupola/server/osb"
	"cupola/store"
	"cupola/store/cf"
)

// catalogTask is what the tasks have in common that read a catalog: one request, and
// nothing to poll.
type catalogTask struct{}

func (catalogTask) poll(context.Context, *Loop, *step) answer {
	return answer{err: errors.New("a catalog is not polled")}
}
func (catalogTask) began(*store.Tx, *step, answer) error { return nil }
func (catalogTask) said(*store.Tx, *step, string) error  { return nil }
func (catalogTask) words() words                         { return words{send: "synchronize", timeout: "synchronize"} }
func (catalogTask) gone(*step) fault {
	return newFault(codeBrokerGone, "ServiceBrokerGone", "The service broker was removed before the synchronization completed")
}

// syncBroker reads the catalog of a broker that was registered.
type syncBroker struct{ catalogTask }

func (*syncBroker) load(tx *store.Tx, s *step) (err error) {
	if err := s.input(&s.work); err != nil {
		return err
	}
	s.broker, err = store.ServiceBrokers.Get(tx, s.job.ResourceGUID)
	return err
}

func (*syncBroker) send(ctx context.Context, l *Loop, s *step) answer {
	return l.readCatalog(ctx, s, s.broker, s.work.Actor)
}

func (l *Loop) readCatalog(ctx context.Context, s *step, b *cf.ServiceBroker, actor cf.Actor) answer {
	catalog, err := l.Client.Catalog(ctx, l.target(s, b), actor.GUID)
	if err != nil {
		return answer{err: catalogFault(err)}
	}
	return answer{catalog: catalog}
}

// catalogFault is Cloud Controller's error of a catalog that was not read.
func catalogFault(err error) fault {
	e, ok := errors.AsType[*osb.Error](err)
	switch {
	case ok && e.Name == osb.Malformed:
		return newFault(codeRequestMalformed, "ServiceBrokerRequestMalformed",
			"The service broker returned an invalid response: expected valid JSON object in body. Please check that the URL points to a valid service broker.")
	case ok && e.Name == osb.Rejected:
		return newFault(codeRequestRejected, "ServiceBrokerRequestRejected",
			"The service broker rejected the request. Status Code: %s. Please check that the URL points to a valid service broker.", e.Line())
	}
	return plainFault(err)
}

// takeCatalog applies a catalog, or says what is wrong with it.
func takeCatalog(tx *store.Tx, s *step, b *cf.ServiceBroker, catalog *osb.Catalog) error {
	c, err := newCatalogSync(tx, b)
	if err != nil {
		return err
	}
	if faults := catalog.Faults(c.known()); faults != "" {
		return newFault(codeCatalogInvalid, "ServiceBrokerCatalogInvalid", "Service broker catalog is invalid: %s", faults)
	}
	s.job.Warnings, err = c.apply(catalog)
	return err
}

func (*syncBroker) succeeded(tx *store.Tx, s *step, a answer) error {
	if err := takeCatalog(tx, s, s.broker, a.catalog); err != nil {
		return err
	}
	s.broker.State = cf.BrokerAvailable
	return store.ServiceBrokers.Update(tx, s.broker)
}

func (*syncBroker) failed(tx *store.Tx, s *step, _ fault) error {
	s.broker.State = cf.BrokerSyncFailed
	return store.ServiceBrokers.Update(tx, s.broker)
}

// updateBroker changes a broker once its catalog was read in the new way.
type updateBroker struct {
	catalogTask
	update cf.BrokerUpdate
	next   *cf.ServiceBroker // what the broker becomes
}

func (u *updateBroker) load(tx *store.Tx, s *step) (err error) {
	if err := s.input(&u.update); err != nil {
		return err
	}
	if s.broker, err = store.ServiceBrokers.Get(tx, s.job.ResourceGUID); err != nil {
		return err
	}
	next := *s.broker
	for _, field := range []struct{ to, from *string }{{&next.Name, u.update.Name}, {&next.URL, u.update.URL},
		{&next.Username, u.update.Username}, {&next.Password, u.update.Password}} {
		if field.from != nil {
			*field.to = *field.from
		}
	}
	if m := u.update.Metadata; m != nil {
		next.Metadata = cf.Metadata{Labels: maps.Clone(m.Labels), Annotations: maps.Clone(m.Annotations)}
	}
	u.next = &next
	return nil
}

// onlyRenames reports whether nothing of the update concerns the catalog.
func (u *updateBroker) onlyRenames() bool {
	return u.update.URL == nil && u.update.Username == nil && u.update.Password == nil
}

func (u *updateBroker) send(ctx context.Context, l *Loop, s *step) answer {
	if u.onlyRenames() {
		return answer{}
	}
	return l.readCatalog(ctx, s, u.next, u.update.Actor)
}

func (u *updateBroker) succeeded(tx *store.Tx, s *step, a answer) error {
	if !u.onlyRenames() {
		if err := takeCatalog(tx, s, u.next, a.catalog); err != nil {
			return err
		}
	}
	u.next.State = cf.BrokerAvailable
	err := store.ServiceBrokers.Update(tx, u.next)
	if store.IsTaken(err) {
		return newFault(codeBrokerInvalid, "ServiceBrokerInvalid", "Name must be unique")
	}
	return err
}

func (u *updateBroker) failed(tx *store.Tx, s *step, _ fault) error {
	s.broker.State = u.update.Before
	return store.ServiceBrokers.Update(tx, s.broker)
}
