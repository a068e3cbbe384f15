// Package builtin is what the daemon's own service brokers share: each is registered as any broker
// is, listens on the loopback, and gives every org its plans once.
package builtin

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"time"

	"cupola/runtime/fault"
	"cupola/store"
	"cupola/store/cf"
)

// Config is what a Broker is made of.
type Config struct {
	Name    string // by which it is registered
	Setting string // of the store: the GUID of its registration
	// Revision is another one when the catalog is another one; "": it is read whenever the daemon starts.
	Revision string
	Store    *store.Store
	Log      *slog.Logger
}

// NameTaken says that another service broker has the name of a built-in one.
type NameTaken string

func (n NameTaken) Error() string {
	return fmt.Sprintf("a service broker is called %q already, as a built-in one is: rename it with 'cf rename-service-broker'", string(n))
}

// Broker is a registration and its listener.
type Broker struct {
	Config
	GUID, Username, Password string // of the registration

	listener net.Listener
}

// Open registers a broker, and listens where its registration says. Its error may be NameTaken.
func Open(ctx context.Context, c Config) (*Broker, error) {
	row, err := c.registration(ctx)
	if err != nil {
		return nil, err
	}
	l, err := listenAgain(ctx, row.URL)
	if err != nil {
		return nil, err
	}
	was := row.URL
	row.URL = "http://" + l.Addr().String()
	err = c.Store.Write(ctx, func(tx *store.Tx) error {
		if current, err := c.current(tx, row, was); current || err != nil {
			return err
		}
		return c.register(tx, row)
	})
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return &Broker{c, row.GUID, row.Username, row.Password, l}, nil
}

// registration is the broker's row, new or existing.
func (c Config) registration(ctx context.Context) (row *cf.ServiceBroker, err error) {
	row = &cf.ServiceBroker{Name: c.Name, Username: c.Name, Password: rand.Text()}
	err = c.Store.Read(ctx, func(tx *store.Tx) error {
		var guid string
		if ok, err := store.Settings.Get(tx, c.Setting, &guid); !ok {
			return err
		}
		was, err := store.ServiceBrokers.Get(tx, guid)
		if err == nil {
			row = was
		}
		if store.IsNotFound(err) {
			err = nil // an admin deleted it: it is made again
		}
		return err
	})
	return row, err
}

func (c Config) revisionSetting() string { return c.Setting + "_revision" }

// current reports whether the platform has read the catalog of this revision, at this URL.
func (c Config) current(tx *store.Tx, row *cf.ServiceBroker, url string) (bool, error) {
	var read string
	if c.Revision == "" || row.URL != url || row.State != cf.BrokerAvailable {
		return false, nil
	}
	_, err := store.Settings.Get(tx, c.revisionSetting(), &read)
	return read == c.Revision, err
}

// register writes the registration, and lets the platform read the catalog.
func (c Config) register(tx *store.Tx, row *cf.ServiceBroker) error {
	row.State = cf.BrokerSynchronizing
	err := store.ServiceBrokers.Put(tx, row)
	if store.IsTaken(err) {
		return NameTaken(c.Name)
	}
	if err != nil {
		return err
	}
	for setting, value := range map[string]string{c.Setting: row.GUID, c.revisionSetting(): c.Revision} {
		if err := store.Settings.Set(tx, setting, value); err != nil {
			return err
		}
	}
	work, err := json.Marshal(cf.ServiceWork{Actor: cf.Actor{GUID: row.GUID, Type: "service_broker", Name: row.Name}})
	if err != nil {
		return err
	}
	return store.Jobs.Insert(tx, &cf.Job{Operation: cf.JobSyncBroker, ResourceGUID: row.GUID, ResourceType: "service_brokers", State: cf.JobProcessing, Input: string(work)})
}

// catalogTime is how long the platform may take to read the catalog until ReadCatalog returns.
const catalogTime = 30 * time.Second

// ReadCatalog makes the platform read the catalog again, and returns when that is done: until then no
// service instance can be created.
func (b *Broker) ReadCatalog(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, catalogTime)
	defer cancel()
	err := b.Store.Write(ctx, func(tx *store.Tx) error {
		row, err := store.ServiceBrokers.Get(tx, b.GUID)
		if err != nil {
			return err
		}
		return b.register(tx, row)
	})
	if err != nil {
		return err
	}
	return b.Store.Until(ctx, func(tx *store.Tx) (bool, error) {
		row, err := store.ServiceBrokers.Get(tx, b.GUID)
		return err == nil && !row.Busy(), err
	})
}

// Start answers the platform with h, and publishes plans, in a group until ctx ends.
func (b *Broker) Start(ctx context.Context, group *fault.Group, h http.Handler) {
	group.Go(fault.Loop(ctx, b.Name, func(ctx context.Context) error { return b.serve(ctx, h) }))
	group.Go(fault.Loop(ctx, b.Name, b.publishPlans))
}

func (b *Broker) serve(ctx context.Context, h http.Handler) error {
	srv := &http.Server{Handler: Guard(b.Username, b.Password, h), ReadHeaderTimeout: 10 * time.Second, BaseContext: func(net.Listener) context.Context { return ctx }}
	stop := context.AfterFunc(ctx, func() { srv.Close() })
	defer stop()
	if err := srv.Serve(fault.Listener(b.Name, b.listener)); ctx.Err() == nil {
		return fmt.Errorf("serve the service broker %s: %w", b.Name, err)
	}
	return nil
}

// Close closes the listener, which serving has closed if it did.
func (b *Broker) Close() { _ = b.listener.Close() }

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
