package ingress

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"cupola/runtime/lrp"
	"cupola/server/bbs/bbspb"
	"cupola/server/bbs/bbsrows"
	"cupola/server/router"
	"cupola/store"
	"cupola/store/cf"
	"cupola/store/storetest"
)

func openStore(t *testing.T, dir string) *store.Store {
	t.Helper()
	s, err := store.Open(store.Config{Dir: dir, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	write(t, s, func(tx *store.Tx) error {
		return errors.Join(store.Orgs.Insert(tx, &cf.Org{Resource: named("org"), Name: "org"}), store.Spaces.Insert(tx, &cf.Space{Resource: named("space"), Name: "space", OrgGUID: "org"}),
			store.Domains.Insert(tx, &cf.Domain{Resource: named("domain"), Name: "example.com"}), store.Domains.Insert(tx, &cf.Domain{Resource: named("internal"), Name: "apps.internal", Internal: true}),
			store.Domains.Insert(tx, &cf.Domain{Resource: named("guarded"), Name: "apps.identity", EnforcesPolicies: true, PoliciesScope: "org"}))
	})
	return s
}

func named(guid string) cf.Resource { return cf.Resource{GUID: guid} }

func write(t *testing.T, s *store.Store, f func(*store.Tx) error) {
	t.Helper()
	if err := s.Write(t.Context(), f); err != nil {
		t.Fatal(err)
	}
}

// insertApp adds an app with a process.
func insertApp(tx *store.Tx, name string) error {
	if err := store.Apps.Insert(tx, &cf.App{Resource: named(name), Name: name, SpaceGUID: "space", State: cf.Started}); err != nil {
		return err
	}
	return store.Processes.Insert(tx, &cf.Process{Resource: named("process-" + name), AppGUID: name, Type: "web", Instances: 1})
}

func insertRoute(tx *store.Tx, name, domain string) error {
	return store.Routes.Insert(tx, &cf.Route{Resource: named(domain + "-" + name), Host: name, DomainGUID: domain, SpaceGUID: "space", Destinations: []cf.Destination{{AppGUID: name}}})
}

func insertInstance(tx *store.Tx, name, address string) error {
	return store.ActualLRPs.Insert(tx, lrp.Actual{Key: lrp.Key{ProcessGUID: "process-" + name + "-0123abcd"}, Domain: lrp.DomainApps, State: lrp.Running, Ready: true, InstanceGUID: name, Address: address})
}

// tables reads them once, and returns what tells when they may be others.
func tables(t *testing.T, s *store.Store) (Tables, *store.Reads) {
	t.Helper()
	r := s.Reads()
	t.Cleanup(r.Close)
	var all Tables
	if err := r.Read(t.Context(), func(tx *store.Tx) (err error) { all, err = Read(tx, bbsrows.New()); return err }); err != nil {
		t.Fatal(err)
	}
	return all, r
}

func hosts(t router.Table) (all []string) {
	for _, r := range t.Routes {
		all = append(all, r.Host)
		for _, e := range r.Endpoints {
			all = append(all, e.Address)
		}
	}
	return all
}

// TestAnAppThatDoesNotRunChangesNoRoute has apps created and deleted that have
// neither instances nor routes.
func TestAnAppThatDoesNotRunChangesNoRoute(t *testing.T) {
	s := openStore(t, t.TempDir())
	write(t, s, func(tx *store.Tx) error {
		return errors.Join(insertApp(tx, "runs"), insertRoute(tx, "runs", "domain"), insertInstance(tx, "runs", "10.0.0.1"))
	})
	got, r := tables(t, s)
	if d := cmp.Diff([]string{"runs.example.com", "10.0.0.1:8080"}, hosts(got.Routes)); d != "" {
		t.Fatal(d)
	}
	write(t, s, func(tx *store.Tx) error { return insertApp(tx, "new") })
	write(t, s, func(tx *store.Tx) error { return store.Apps.Delete(tx, "new") })
	if r.IsStale() {
		t.Error("an app without instances has the routes derived again")
	}
	write(t, s, func(tx *store.Tx) error { return store.Apps.Delete(tx, "runs") }) // its process goes by a foreign key
	if !r.IsStale() {
		t.Error("routes are not derived again though a process that serves one is deleted")
	}
}

// TestDamagedRowsStopNoOtherRoute damages the rows of one app in one table after
// the other.
func TestDamagedRowsStopNoOtherRoute(t *testing.T) {
	for table, where := range map[string]string{"routes": "guid = 'domain-damaged'", "domains": "guid = 'domain'", "processes": "guid = 'process-damaged'", "actual_lrps": "instance_guid = 'damaged'",
		"route_bindings": "true", "route_policies": "true", "data_instances": "true", "bbs_desired_lrps": "true", "bosh_deployments": "true"} {
		t.Run(table, func(t *testing.T) {
			dir := t.TempDir()
			s := openStore(t, dir)
			write(t, s, func(tx *store.Tx) error {
				return errors.Join(insertApp(tx, "damaged"), insertRoute(tx, "damaged", "domain"), insertInstance(tx, "damaged", "10.0.0.1"),
					store.Domains.Insert(tx, &cf.Domain{Resource: named("other"), Name: "other.com"}), insertApp(tx, "well"), insertRoute(tx, "well", "other"), insertInstance(tx, "well", "10.0.0.2"),
					store.ServiceInstances.Insert(tx, &cf.ServiceInstance{Resource: named("instance"), Name: "instance", SpaceGUID: "space", Type: "user-provided"}),
					store.RouteBindings.Insert(tx, &cf.RouteBinding{Resource: named("binding"), InstanceGUID: "instance", RouteGUID: "domain-damaged", RouteServiceURL: "https://guard"}),
					store.RoutePolicies.Insert(tx, &cf.RoutePolicy{Resource: named("policy"), RouteGUID: "domain-damaged", Source: "any"}),
					store.DataInstances.Insert(tx, &cf.DataInstance{Resource: named("data"), State: cf.DataReady}),
					store.BOSHDeployments.Insert(tx, &cf.BOSHDeployment{Resource: named("deployment"), Name: "nats", Aliases: []byte("{")}),
					store.BBSDesireds.Insert(tx, &store.BBSDesired{ProcessGUID: "lrp", Domain: "tests", Instances: 1}, func(lrp.Tag) ([]byte, error) { return []byte{0xff}, nil }))
			})
			storetest.Damage(t, dir, table, where)
			got, _ := tables(t, s)
			if all := hosts(got.Routes); !slices.Contains(all, "well.other.com") || !slices.Contains(all, "10.0.0.2:8080") {
				t.Errorf("got %v; want the other app's route", all)
			}
			for _, r := range got.Routes.Routes {
				if table == "route_bindings" && r.Host == "damaged.example.com" {
					t.Error("requests pass by a route service that cannot be read")
				}
			}
		})
	}
}

// TestTablesEqualTheRows writes at random, and wants the tables to be those of the
// rows once what they read is not stale.
func TestTablesEqualTheRows(t *testing.T) {
	bbs := bbsrows.New()
	read := func(tx *store.Tx) (Tables, error) { return Read(tx, bbs) }
	storetest.Derived(t, openStore(t, t.TempDir()), read, read, randomRows)
}

func randomRows(n string, v int) storetest.Rows {
	text, instance := fmt.Sprint(n, v), lrp.Actual{Key: lrp.Key{ProcessGUID: "process-" + n + "-0123abcd"}, Domain: lrp.DomainApps, State: lrp.Running, Ready: true, Address: "10.0.0.1"}
	data := lrp.Actual{Key: lrp.Key{ProcessGUID: "cupola-service-" + n}, Domain: lrp.DomainServices, State: lrp.Running, Address: "10.0.0.2"}
	desired := &store.BBSDesired{ProcessGUID: n, Domain: "tests", Instances: 1}
	routes := json.RawMessage(`[{"hostnames": ["` + n + `.bbs.test"], "port": 8080}]`)
	message, _ := proto.Marshal(&bbspb.DesiredLRP{ProcessGuid: n, Domain: "tests", Instances: 1, Routes: &bbspb.Routes{Routes: map[string][]byte{"cf-router": routes}}})
	return storetest.Rows{
		Puts: []func(*store.Tx) error{
			storetest.Put(store.Apps, &cf.App{Resource: named(n), Name: n, SpaceGUID: "space", State: cf.Started}),
			storetest.Put(store.Processes, &cf.Process{Resource: named("process-" + n), AppGUID: n, Type: []string{"web", "worker"}[v/2], Instances: 1}),
			storetest.Put(store.Domains, &cf.Domain{Resource: named(n), Name: text + ".test", Internal: v == 1, EnforcesPolicies: v == 0, PoliciesScope: "org"}),
			storetest.Put(store.Routes, &cf.Route{Resource: named(n), Host: text, DomainGUID: n, SpaceGUID: "space", Destinations: []cf.Destination{{AppGUID: n, ProcessType: "web"}}}),
			func(tx *store.Tx) error { return store.ActualLRPs.Insert(tx, instance) },
			storetest.Put(store.ServiceInstances, &cf.ServiceInstance{Resource: named(n), Name: n, SpaceGUID: "space", Type: cf.UserProvided}),
			storetest.Put(store.RouteBindings, &cf.RouteBinding{Resource: named(n), InstanceGUID: n, RouteGUID: n, RouteServiceURL: "https://" + text}),
			storetest.Put(store.RoutePolicies, &cf.RoutePolicy{Resource: named(n), RouteGUID: n, Source: "cf:app:" + text}),
			storetest.Put(store.DataInstances, &cf.DataInstance{Resource: named(n), State: cf.DataReady}),
			func(tx *store.Tx) error { return store.ActualLRPs.Insert(tx, data) },
			storetest.Put(store.BOSHDeployments, &cf.BOSHDeployment{Resource: named(n), Name: text}),
			storetest.Put(store.BOSHInstances, &cf.BOSHInstance{Resource: named(n), DeploymentGUID: n, Group: text, Lifecycle: "service", Goal: "started", Phase: cf.BOSHRunning}),
			func(tx *store.Tx) error {
				return store.BBSDesireds.Insert(tx, desired, func(lrp.Tag) ([]byte, error) { return message, nil })
			},
		},
		Deletes: []func(*store.Tx) error{
			func(tx *store.Tx) error { _, err := store.ActualLRPs.Retire(tx, instance.Key); return err }, func(tx *store.Tx) error { _, err := store.ActualLRPs.Delete(tx, instance); return err },
			func(tx *store.Tx) error { _, err := store.BBSDesireds.Delete(tx, n); return err },
			storetest.Delete(store.Apps, n), storetest.Delete(store.Processes, "process-"+n), storetest.Delete(store.Routes, n), storetest.Delete(store.RouteBindings, n), storetest.Delete(store.RoutePolicies, n), storetest.Delete(store.DataInstances, n), storetest.Delete(store.BOSHDeployments, n),
		},
	}
}

// TestAwaitIdleWaitsForTheTable wants each AwaitIdle to see a table that was read after
// it began.
func TestAwaitIdleWaitsForTheTable(t *testing.T) {
	s := openStore(t, t.TempDir())
	write(t, s, func(tx *store.Tx) error {
		return errors.Join(insertApp(tx, "a"), insertRoute(tx, "a", "domain"), insertInstance(tx, "a", "10.0.0.1"))
	})
	i := New(Config{Store: s, Router: router.New(router.Config{Log: slog.New(slog.DiscardHandler)}), BBS: bbsrows.New(), Log: slog.New(slog.DiscardHandler)})
	if err := i.Set(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	run, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- i.Run(run) }()
	reads := func(n *uint64) uint64 { i.mu.Lock(); defer i.mu.Unlock(); return *n }
	for range 5 {
		before := reads(&i.begun)
		if err := i.AwaitIdle(ctx, "a"); err != nil || reads(&i.done) <= before {
			t.Fatalf("got %v; want a table read after %d", err, before)
		}
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestRoutingIsCurrent waits for a table that was begun after the question.
func TestRoutingIsCurrent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := New(Config{})
		under := r.begin()
		asked := make(chan error, 1)
		go func() { asked <- r.Current(t.Context()) }()
		synctest.Wait()
		r.end(under)
		synctest.Wait()
		if len(asked) > 0 {
			t.Fatal("a table that was begun before is no answer")
		}
		<-r.kick
		r.end(r.begin())
		if err := <-asked; err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := r.Current(ctx); err == nil {
			t.Error("got no error though nobody sets tables")
		}
	})
}
