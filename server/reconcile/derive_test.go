package reconcile

import (
	"fmt"
	"log/slog"
	"testing"

	"google.golang.org/protobuf/proto"

	"cupola/runtime/lrp"
	"cupola/server/bbs/bbspb"
	"cupola/server/databroker"
	"cupola/store"
	"cupola/store/cf"
	"cupola/store/storetest"
)

// TestDesiredEqualsTheRows writes at random what the desired state depends on.
func TestDesiredEqualsTheRows(t *testing.T) {
	if testing.Short() {
		t.Skip("takes twenty seconds with the race detector, which sees nothing in it")
	}
	s, err := store.Open(store.Config{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	config := Config{Store: s, Sources: []Source{{Desired: databroker.AllDesired}}}
	loop := New(config)
	storetest.Derived(t, s, loop.desired, func(tx *store.Tx) (World, error) { return New(config).desired(tx) }, rows)
}

// desired is the part of a World that rows alone decide which the loop does not
// write itself.
func (l *Loop) desired(tx *store.Tx) (World, error) {
	w, err := l.load(tx, nil)
	return World{Desired: w.Desired, Work: w.Work, Waits: w.Waits}, err
}

func rows(n string, v int) (all storetest.Rows) {
	for _, of := range []func(cf.Resource, string, int) storetest.Rows{rowsOfAll, rowsOfApp, rowsOfWork, rowsOfServices, rowsOfBBS} {
		some := of(cf.Resource{GUID: n}, fmt.Sprint(n, v), v)
		all.Puts, all.Deletes = append(all.Puts, some.Puts...), append(all.Deletes, some.Deletes...)
	}
	return all
}

// rowsOfAll are those that all apps depend on.
func rowsOfAll(named cf.Resource, text string, v int) storetest.Rows {
	n := named.GUID
	return storetest.Rows{Puts: []func(*store.Tx) error{
		storetest.Put(store.Orgs, &cf.Org{Resource: named, Name: text}),
		storetest.Put(store.Spaces, &cf.Space{Resource: named, Name: text, OrgGUID: n}),
		storetest.Put(store.Stacks, &cf.Stack{Resource: named, Name: n, State: "ACTIVE", Compat: text}),
		storetest.Put(store.Buildpacks, &cf.Buildpack{Resource: named, Name: n, State: "READY", Enabled: true, Position: 1 + v, Lifecycle: "buildpack", Digest: text}),
		storetest.Put(store.EnvGroups, &cf.EnvGroup{Name: []string{"running", "staging"}[v/2], Vars: map[string]string{"A": text}}),
		storetest.Put(store.SecurityGroups, &cf.SecurityGroup{Resource: named, Name: n, GlobalRunning: true, Rules: []cf.SecurityRule{{Protocol: "all", Destination: fmt.Sprintf("10.0.0.%d", v)}}}),
		storetest.Put(store.Domains, &cf.Domain{Resource: named, Name: text + ".test"}),
	}, Deletes: []func(*store.Tx) error{
		storetest.Delete(store.Orgs, n), storetest.Delete(store.Stacks, n), storetest.Delete(store.Buildpacks, n), storetest.Delete(store.SecurityGroups, n), storetest.Delete(store.Domains, n),
	}}
}

// rowsOfApp are an app that may be started. Its revision never changes.
func rowsOfApp(named cf.Resource, text string, v int) storetest.Rows {
	n := named.GUID
	return storetest.Rows{Puts: []func(*store.Tx) error{
		storetest.Put(store.Apps, &cf.App{Resource: named, Name: text, SpaceGUID: n, State: []cf.AppState{cf.Started, cf.Started, cf.Stopped}[v], Lifecycle: cf.Lifecycle{Type: cf.LifecycleBuildpack, Stack: n}, Env: map[string]string{"B": text}}),
		storetest.Put(store.Droplets, &cf.Droplet{Resource: named, AppGUID: n, State: []cf.DropletState{cf.DropletStaged, cf.DropletStaged, cf.DropletExpired}[v], Digest: text, Stack: n, ProcessTypes: map[string]string{"web": "./run"}}),
		storetest.Put(store.Apps, &cf.App{Resource: named, Name: text, SpaceGUID: n, DropletGUID: n, State: cf.Started, Lifecycle: cf.Lifecycle{Type: cf.LifecycleBuildpack, Stack: n}, Env: map[string]string{"B": text}}),
		storetest.Put(store.Revisions, &cf.Revision{Resource: named, AppGUID: n, Version: 1, DropletGUID: n, Env: map[string]string{"C": n}}),
		storetest.Put(store.Processes, &cf.Process{Resource: named, AppGUID: n, Type: "web", Instances: 1 + v, RevisionGUID: []string{"", n, n}[v]}),
		storetest.Put(store.Routes, &cf.Route{Resource: named, Host: text, DomainGUID: n, SpaceGUID: n, Destinations: []cf.Destination{{AppGUID: n, Port: 8080 + v}}}),
	}, Deletes: []func(*store.Tx) error{storetest.Delete(store.Apps, n), storetest.Delete(store.Processes, n), storetest.Delete(store.Routes, n)}}
}

// rowsOfWork are what runs once.
func rowsOfWork(named cf.Resource, text string, v int) storetest.Rows {
	n := named.GUID
	return storetest.Rows{Puts: []func(*store.Tx) error{
		storetest.Put(store.Packages, &cf.Package{Resource: named, AppGUID: n, Type: "bits", State: cf.PackageReady, Digest: text}),
		func(tx *store.Tx) error { return store.BuildCaches.Set(tx, n, n, text) },
		storetest.Put(store.Builds, &cf.Build{Resource: named, AppGUID: n, PackageGUID: n, State: []cf.BuildState{cf.BuildStaging, cf.BuildStaging, cf.BuildFailed}[v], Lifecycle: cf.Lifecycle{Type: cf.LifecycleBuildpack, Stack: n}}),
		storetest.Put(store.Tasks, &cf.Task{Resource: named, AppGUID: n, DropletGUID: n, SequenceID: 1, Command: text, State: []cf.TaskState{cf.TaskPending, cf.TaskRunning, cf.TaskFailed}[v]}),
	}, Deletes: []func(*store.Tx) error{storetest.Delete(store.Packages, n), store.BuildCaches.Clear, storetest.Delete(store.Builds, n), storetest.Delete(store.Tasks, n)}}
}

// rowsOfServices are what apps are bound to, and what the built-in broker runs.
func rowsOfServices(named cf.Resource, text string, v int) storetest.Rows {
	n := named.GUID
	return storetest.Rows{Puts: []func(*store.Tx) error{
		storetest.Put(store.ServiceBrokers, &cf.ServiceBroker{Resource: named, Name: n, URL: "http://broker", State: cf.BrokerAvailable}),
		storetest.Put(store.ServiceOfferings, &cf.ServiceOffering{Resource: named, Name: text, BrokerGUID: n}),
		storetest.Put(store.ServicePlans.Table, &cf.ServicePlan{Resource: named, Name: text, OfferingGUID: n}),
		storetest.Put(store.ServiceInstances, &cf.ServiceInstance{Resource: named, Name: text, SpaceGUID: n, Type: cf.Managed, PlanGUID: n}),
		storetest.Put(store.ServiceBindings.Table, &cf.ServiceBinding{Resource: named, Type: cf.BindingApp, AppGUID: n, InstanceGUID: n, Credentials: fmt.Appendf(nil, `{"a": %d}`, v), LastOperation: cf.LastOperation{Type: cf.OpCreate, State: cf.OpSucceeded}}),
		storetest.Put(store.DataInstances, &cf.DataInstance{Resource: named, Service: "postgres", Plan: "small", State: []cf.DataState{cf.DataReady, cf.DataMaking, cf.DataDeleting}[v]}),
	}, Deletes: []func(*store.Tx) error{storetest.Delete(store.ServiceBindings.Table, n), storetest.Delete(store.ServiceInstances, n), storetest.Delete(store.DataInstances, n)}}
}

// rowsOfBBS are what a client of the BBS desires.
func rowsOfBBS(named cf.Resource, _ string, v int) storetest.Rows {
	n := named.GUID
	message := func(tag lrp.Tag) ([]byte, error) {
		d := bbsLRP(int32(1 + v))
		d.ProcessGuid, d.ModificationTag = n, &bbspb.ModificationTag{Epoch: tag.Epoch, Index: tag.Index}
		return proto.Marshal(d)
	}
	row := &store.BBSDesired{ProcessGUID: n, Domain: "tests", Instances: 1 + v}
	definition, _ := proto.Marshal(&bbspb.TaskDefinition{RootFs: "preloaded:minifs", Action: bbsLRP(1).Action})
	return storetest.Rows{Puts: []func(*store.Tx) error{
		func(tx *store.Tx) error { return store.BBSDesireds.Insert(tx, row, message) },
		func(tx *store.Tx) error {
			was, err := store.BBSDesireds.Get(tx, n)
			if err != nil {
				return err
			}
			return store.BBSDesireds.Update(tx, was, row, message)
		},
		storetest.Put(store.BBSTasks.Table, &store.BBSTask{GUID: n, RunGUID: n, Domain: "tests", State: []lrp.TaskState{lrp.TaskPending, lrp.TaskRunning, lrp.TaskCompleted}[v], Definition: definition}),
	}, Deletes: []func(*store.Tx) error{func(tx *store.Tx) error { _, err := store.BBSDesireds.Delete(tx, n); return err }, storetest.Delete(store.BBSTasks.Table, n)}}
}
