package ingress

import (
	"context"
	"log/slog"
	"slices"
	"sync"

	"cupola/server/bbs/bbsrows"
	"cupola/server/dns"
	"cupola/server/router"
	"cupola/store"
	"cupola/store/cf"
)

// Config is what an Ingress is made of.
type Config struct {
	Store  *store.Store
	Router *router.Router
	Names  *dns.Server // nil: there are no names
	// Certify receives the names in internal domains that lead to instances, by the
	// instances' GUIDs, before these names do; may be nil.
	Certify func(names map[string][]string)
	BBS     *bbsrows.Cache // reads what clients of the BBS desire
	Domain  string         // the system domain, whose own hosts no route takes
	Ports   cf.PortRanges  // of TCP routes; no route has another
	Log     *slog.Logger
}

// Ingress keeps the router's table and the names as the rows want them.
type Ingress struct {
	Config
	kick chan struct{} // asks for one more run

	mu    sync.Mutex
	begun uint64        // how often the rows were read
	done  uint64        // the last of begun whose tables are set
	set   chan struct{} // closed at the next done
}

// New makes an Ingress.
func New(c Config) *Ingress {
	return &Ingress{Config: c, kick: make(chan struct{}, 1), set: make(chan struct{})}
}

// Run keeps the tables current until ctx ends.
func (i *Ingress) Run(ctx context.Context) error {
	return store.Derive(ctx, i.Store, store.Derivation[numbered]{Name: "routes", Read: i.read, Use: store.Always(i.use), Wake: i.kick, Log: i.Log})
}

// Set sets the tables once.
func (i *Ingress) Set(ctx context.Context) error {
	return store.DeriveOnce(ctx, i.Store, i.read, i.use)
}

// numbered are the tables of one read of the rows.
type numbered struct {
	Tables
	n uint64
}

// read counts before the transaction's first statement, which fixes what it sees.
func (i *Ingress) read(tx *store.Tx) (t numbered, err error) {
	t.n = i.begin()
	t.Tables, err = Read(tx, i.BBS)
	t.Routes.Routes = slices.DeleteFunc(t.Routes.Routes, func(r router.Route) bool {
		return cf.IsSystemHost(r.Host, i.Domain) || r.Port != 0 && !i.Ports.Contain(r.Port)
	})
	return t, err
}

func (i *Ingress) use(_ context.Context, t numbered) error {
	i.Router.Set(t.Routes)
	if i.Certify != nil {
		i.Certify(t.Certified)
	}
	if i.Names != nil {
		i.Names.Set(t.Names)
	}
	i.end(t.n)
	return nil
}

func (i *Ingress) begin() uint64 {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.begun++
	return i.begun
}

func (i *Ingress) end(n uint64) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.done = n
	close(i.set)
	i.set = make(chan struct{})
}

// AwaitIdle waits until no request is under way to an instance whose row says that
// it gets none.
func (i *Ingress) AwaitIdle(ctx context.Context, instanceGUID string) error {
	if err := i.Current(ctx); err != nil {
		return err
	}
	return i.Router.Settle(ctx, instanceGUID)
}

// Current waits until the tables hold what the rows say now, or later.
func (i *Ingress) Current(ctx context.Context) error {
	i.mu.Lock()
	want := i.begun + 1
	i.mu.Unlock()
	select {
	case i.kick <- struct{}{}:
	default:
	}
	for {
		i.mu.Lock()
		done, set := i.done, i.set
		i.mu.Unlock()
		if done >= want {
			return nil
		}
		select {
		case <-set:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
