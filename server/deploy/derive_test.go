package deploy

import (
	"errors"
	"log/slog"
	"testing"

	"cupola/runtime/lrp"
	"cupola/server/desire"
	"cupola/store"
	"cupola/store/cf"
	"cupola/store/storetest"
)

// TestDueEqualsTheRows writes at random what the deployments depend on that have
// something to do.
func TestDueEqualsTheRows(t *testing.T) {
	s, err := store.Open(store.Config{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	read := func(tx *store.Tx) ([]string, error) {
		d, err := look(tx)
		return d.guids, errors.Join(err, d.fault)
	}
	storetest.Derived(t, s, read, read, rows)
}

// rows are those of an app with its deployment. None depends on the time: the
// deployment was never healthy.
func rows(n string, v int) storetest.Rows {
	named, old := cf.Resource{GUID: n}, cf.Resource{GUID: n + "-old"}
	app := &cf.App{Resource: named, Name: n, SpaceGUID: "space", State: []cf.AppState{cf.Started, cf.Started, cf.Stopped}[v]}
	process := &cf.Process{Resource: named, AppGUID: n, Type: "web", Instances: 1 + v}
	deployment := &cf.Deployment{Resource: named, AppGUID: n, Strategy: cf.Canary, State: []cf.DeploymentState{cf.Deploying, cf.Prepaused, cf.Deployed}[v], StatusValue: []string{cf.Active, cf.Finalized}[v/2],
		StatusReason: string(cf.Deploying), WebProcess: n, OriginalInstances: 1, CanaryStep: 1, Options: cf.DeploymentOptions{MaxInFlight: 1}}
	actual := lrp.Actual{Key: lrp.Key{ProcessGUID: desire.ProcessGUID(process, app)}, Domain: lrp.DomainApps, State: lrp.Running, Ready: true, Address: "10.0.0.1"}
	return storetest.Rows{
		Puts: []func(*store.Tx) error{
			storetest.Put(store.Orgs, &cf.Org{Resource: cf.Resource{GUID: "org"}, Name: "org"}),
			storetest.Put(store.Spaces, &cf.Space{Resource: cf.Resource{GUID: "space"}, Name: "space", OrgGUID: "org"}),
			storetest.Put(store.Apps, app), storetest.Put(store.Processes, process),
			storetest.Put(store.Processes, &cf.Process{Resource: old, AppGUID: n, Type: "web", Instances: v}),
			storetest.Put(store.Deployments.Table, deployment),
			storetest.Put(store.Deployments.Table, &cf.Deployment{Resource: old, AppGUID: n, Strategy: cf.Rolling, State: cf.Deployed, StatusValue: cf.Finalized, StatusReason: cf.Superseded, WebProcess: old.GUID}),
			func(tx *store.Tx) error { return store.ActualLRPs.Insert(tx, actual) },
		},
		Deletes: []func(*store.Tx) error{
			func(tx *store.Tx) error { _, err := store.ActualLRPs.Retire(tx, actual.Key); return err },
			func(tx *store.Tx) error { _, err := store.ActualLRPs.Delete(tx, actual); return err },
			storetest.Delete(store.Apps, n), storetest.Delete(store.Processes, n), storetest.Delete(store.Deployments.Table, n),
		},
	}
}
