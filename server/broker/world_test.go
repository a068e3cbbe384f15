package broker

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"cupola/server/osb"
	"cupola/server/osb/osbtest"
	"cupola/store"
	"cupola/store/cf"
)

// world is a store with an org, a space, an app and a route, a broker that
// misbehaves on demand, and a loop.
type world struct {
	t      *testing.T
	store  *store.Store
	broker *osbtest.Broker
	config Config
	stop   func()
	jobs   int
}

func newWorld(t *testing.T) *world {
	t.Helper()
	s, err := store.Open(store.Config{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, store: s, broker: osbtest.New(), stop: func() {}}
	w.config = Config{Store: s, Client: osb.New(osb.Config{APIInfo: "api.test/"}),
		FirstPoll: time.Millisecond, LongestPoll: 5 * time.Millisecond, OrphanRetry: time.Millisecond}
	t.Cleanup(func() { w.stop(); w.broker.Close(); s.Close() })
	w.write(func(tx *store.Tx) error {
		for _, row := range []func() error{
			func() error {
				return store.Orgs.Insert(tx, &cf.Org{Resource: guid("org-1"), Name: "org", Metadata: notes("org")})
			},
			func() error {
				return store.Spaces.Insert(tx, &cf.Space{Resource: guid("space-1"), Name: "dev", OrgGUID: "org-1", Metadata: notes("space")})
			},
			func() error {
				return store.Domains.Insert(tx, &cf.Domain{Resource: guid("domain-1"), Name: "apps.test"})
			},
			func() error {
				return store.Apps.Insert(tx, &cf.App{Resource: guid("app-1"), Name: "hello", SpaceGUID: "space-1", State: cf.Stopped, Lifecycle: cf.Lifecycle{Type: "buildpack"}, Metadata: notes("app")})
			},
			func() error {
				return store.Routes.Insert(tx, &cf.Route{Resource: guid("route-1"), SpaceGUID: "space-1", DomainGUID: "domain-1", Host: "hello", Path: "/x"})
			},
			func() error {
				return store.ServiceBrokers.Insert(tx, &cf.ServiceBroker{Resource: guid("broker-1"), Name: "b", URL: w.broker.URL, Username: osbtest.Username, Password: osbtest.Password, State: cf.BrokerSynchronizing})
			},
		} {
			if err := row(); err != nil {
				return err
			}
		}
		return nil
	})
	return w
}

func guid(g string) cf.Resource { return cf.Resource{GUID: g} }

// notes are annotations; brokers are sent one of them.
func notes(of string) cf.Metadata {
	return cf.Metadata{Annotations: map[string]string{"prefix.test/of": of, "own": "secret"}}
}

func (w *world) write(f func(*store.Tx) error) {
	w.t.Helper()
	if err := w.store.Write(context.Background(), f); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) read(f func(*store.Tx) error) {
	w.t.Helper()
	if err := w.store.Read(context.Background(), f); err != nil {
		w.t.Fatal(err)
	}
}

// run starts a loop, in place of the one that runs.
func (w *world) run() {
	w.stop()
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() {
		if err := New(w.config).Run(ctx); err != nil {
			w.t.Error(err)
		}
	})
	w.stop = sync.OnceFunc(func() { cancel(); done.Wait() })
}

// until waits until f finds what it looks for.
func (w *world) until(what string, f func(*store.Tx) bool) {
	w.t.Helper()
	deadline := time.After(time.Minute)
	for {
		found := false
		w.read(func(tx *store.Tx) error { found = f(tx); return nil })
		if found {
			return
		}
		select {
		case <-time.After(10 * time.Millisecond): // what f looks at may be no row
		case <-deadline:
			w.t.Fatalf("not %s in time", what)
		}
	}
}

// job runs a job and returns how it ended.
func (w *world) job(operation, resource string, input any) *cf.Job {
	w.t.Helper()
	return w.ended(w.begin(operation, resource, input))
}

func (w *world) begin(operation, resource string, input any) string {
	w.t.Helper()
	text, err := json.Marshal(input)
	if err != nil {
		w.t.Fatal(err)
	}
	w.jobs++
	j := &cf.Job{Resource: guid(fmt.Sprint("job-", w.jobs)), Operation: operation, ResourceGUID: resource, State: cf.JobProcessing, Input: string(text)}
	w.write(func(tx *store.Tx) error { return store.Jobs.Insert(tx, j) })
	return j.GUID
}

func (w *world) ended(job string) (j *cf.Job) {
	w.t.Helper()
	w.until("ended "+job, func(tx *store.Tx) bool {
		var err error
		j, err = store.Jobs.Get(tx, job)
		return err == nil && (j.State == cf.JobComplete || j.State == cf.JobFailed)
	})
	return j
}

// sync registers the world's broker.
func (w *world) sync() {
	w.t.Helper()
	if j := w.job(cf.JobSyncBroker, "broker-1", work()); j.State != cf.JobComplete {
		w.t.Fatalf("the catalog was not taken: %v", j.Errors)
	}
}

func work() cf.ServiceWork {
	return cf.ServiceWork{Actor: cf.Actor{GUID: "user-1", Name: "joe", Type: "user"}, Parameters: json.RawMessage(`{"size": 1}`), Request: map[string]any{"name": "x"}}
}

func (w *world) plan(name string) (p *cf.ServicePlan) {
	w.t.Helper()
	w.read(func(tx *store.Tx) (err error) {
		p, err = store.ServicePlans.First(tx, store.Query{Where: map[string][]string{"names": {name}}})
		return err
	})
	return p
}

// instance makes a row of an instance about which the daemon must ask the broker.
func (w *world) instance(name, plan string) string {
	w.t.Helper()
	p := w.plan(plan)
	i := &cf.ServiceInstance{Resource: guid("instance-" + name), Name: name, Type: cf.Managed, SpaceGUID: "space-1", PlanGUID: p.GUID, Metadata: notes("instance")}
	if p.MaintenanceInfo != nil {
		i.MaintenanceVersion = p.MaintenanceInfo.Version
	}
	w.write(func(tx *store.Tx) error {
		i.LastOperation = cf.Begin(cf.OpCreate, cf.OpInitial, tx.Now)
		return store.ServiceInstances.Insert(tx, i)
	})
	return i.GUID
}

// create makes an instance with the broker.
func (w *world) create(name string) string {
	w.t.Helper()
	i := w.instance(name, "small")
	if j := w.job(cf.JobCreateInstance, i, work()); j.State != cf.JobComplete {
		w.t.Fatalf("the instance was not made: %v", j.Errors)
	}
	return i
}

// binding makes a row of a binding, of an app or a key.
func (w *world) binding(instance, kind, name string) string {
	w.t.Helper()
	b := &cf.ServiceBinding{Resource: guid("binding-" + name), Type: kind, Name: &name, InstanceGUID: instance}
	if kind == cf.BindingApp {
		b.AppGUID = "app-1"
	}
	w.write(func(tx *store.Tx) error {
		b.LastOperation = cf.Begin(cf.OpCreate, cf.OpInitial, tx.Now)
		return store.ServiceBindings.Insert(tx, b)
	})
	return b.GUID
}

func (w *world) getInstance(guid string) (i *cf.ServiceInstance) {
	w.t.Helper()
	w.read(func(tx *store.Tx) (err error) {
		i, err = store.ServiceInstances.Get(tx, guid)
		if store.IsNotFound(err) {
			return nil
		}
		return err
	})
	return i
}

func (w *world) getBinding(guid string) (b *cf.ServiceBinding) {
	w.t.Helper()
	w.read(func(tx *store.Tx) (err error) {
		b, err = store.ServiceBindings.Get(tx, guid)
		if store.IsNotFound(err) {
			return nil
		}
		return err
	})
	return b
}

// begins writes that an operation on an instance begins.
func (w *world) begins(instance, kind string) {
	w.t.Helper()
	w.write(func(tx *store.Tx) error {
		i, err := store.ServiceInstances.Get(tx, instance)
		if err != nil {
			return err
		}
		i.LastOperation = cf.Begin(kind, cf.OpInProgress, tx.Now)
		return store.ServiceInstances.Update(tx, i)
	})
}

// quiet waits until nothing is left to ask a broker.
func (w *world) quiet() {
	w.t.Helper()
	w.until("quiet", func(tx *store.Tx) bool {
		ops, err := store.BrokerOperations.All(tx)
		return err == nil && len(ops) == 0
	})
}
