package api

import (
	"fmt"
	"testing"

	"cupola/server/control"
	"cupola/store"
	"cupola/store/cf"
)

// seedTenant makes a space of org-1 large: apps with routes, bindings, tasks and
// packages.
func seedTenant(tx *store.Tx, apps int) error {
	if err := store.ServiceInstances.Insert(tx, &cf.ServiceInstance{Resource: guid("instance-big"), Name: "big", SpaceGUID: "space-1", Type: cf.UserProvided}); err != nil {
		return err
	}
	if err := seedApps(tx, apps, func(p *cf.Process, app *cf.App) { app.State = cf.Started }); err != nil {
		return err
	}
	for i := range 1000 { // of one app
		err := store.Tasks.Insert(tx, &cf.Task{AppGUID: "app-100", DropletGUID: "droplet-100", SequenceID: 10 + i, State: cf.TaskFailed})
		if err != nil {
			return err
		}
	}
	for i := range apps {
		app := fmt.Sprintf("app-%d", 100+i)
		if err := control.OrElse(seedTenantApp(tx, app), seedTenantRoute(tx, app)); err != nil {
			return err
		}
	}
	return nil
}

func seedTenantApp(tx *store.Tx, app string) error {
	err := store.ServiceBindings.Insert(tx, &cf.ServiceBinding{Resource: guid("binding-" + app), Type: cf.BindingApp, InstanceGUID: "instance-big", AppGUID: app,
		LastOperation: cf.Begin(cf.OpCreate, cf.OpSucceeded, tx.Now)})
	for i := range 3 {
		err = control.OrElse(err, store.Tasks.Insert(tx, &cf.Task{AppGUID: app, DropletGUID: "droplet-" + app[4:], Name: fmt.Sprint(i), SequenceID: i + 1, State: cf.TaskSucceeded}))
		err = control.OrElse(err, store.Packages.Insert(tx, &cf.Package{AppGUID: app, Type: "bits", State: cf.PackageReady}))
	}
	return err
}

func seedTenantRoute(tx *store.Tx, app string) error {
	return control.OrElse(
		store.Routes.Insert(tx, &cf.Route{SpaceGUID: "space-1", DomainGUID: "domain-1", Host: app,
			Destinations: []cf.Destination{{GUID: "dest-" + app, AppGUID: app, ProcessType: "web", Protocol: "http1"}}}),
		store.Routes.Insert(tx, &cf.Route{Resource: guid("idle-" + app[4:]), SpaceGUID: "space-1", DomainGUID: "domain-1", Host: "idle-" + app}))
}

// longWrites are requests that change or delete much; those with a job end with it.
var longWrites = []struct {
	method, path, body string
	status             int
	gone               string // a path that finds nothing afterwards
	least              int    // transactions that it takes: one statement can remove many rows
}{
	{method: "DELETE", path: "/v3/spaces/space-1", status: 202, gone: "/v3/apps/app-150"},
	{method: "DELETE", path: "/v3/organizations/org-1", status: 202, gone: "/v3/spaces/space-1"},
	{method: "DELETE", path: "/v3/domains/domain-1", status: 202, gone: "/v3/domains/domain-1"},
	{method: "DELETE", path: "/v3/spaces/space-1/routes?unmapped=true", status: 202, gone: "/v3/routes/idle-150"},
	{method: "DELETE", path: "/v3/apps/app-100", status: 202, gone: "/v3/apps/app-100", least: 1000 / 150},
	{method: "DELETE", path: "/v3/service_instances/instance-big", status: 204, gone: "/v3/service_instances/instance-big"},
	{method: "PATCH", path: "/v3/service_instances/instance-big", body: `{"credentials": {"a": "b"}, "syslog_drain_url": "https://d.test"}`, status: 200},
	{method: "DELETE", path: "/v3/users/user-space_developer", status: 202},
	{method: "POST", path: "/v3/app_usage_events/actions/destructively_purge_all_and_reseed", status: 200},
	{method: "POST", path: "/v3/apps/app-100/actions/stop", status: 200},
	{method: "POST", path: "/v3/routes", body: `{"host": "x", "relationships": {"space": {"data": {"guid": "space-1"}}, "domain": {"data": {"guid": "domain-1"}}}}`, status: 201},
	{method: "POST", path: "/v3/domains", body: `{"name": "very.private.test", "relationships": {"organization": {"data": {"guid": "org-1"}}}}`, status: 201},
}

// TestNoWriteHoldsTheWriter changes a large tenant: no transaction runs more than
// some hundred statements, however much there is to do.
func TestNoWriteHoldsTheWriter(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute with the race detector, which sees nothing in it")
	}
	for _, s := range longWrites {
		t.Run(s.method+" "+s.path, func(t *testing.T) {
			w := newWorld(t)
			w.write(func(tx *store.Tx) error { return seedTenant(tx, 150) })
			held := w.watchWrites()
			got := w.ask("admin", s.method, s.path, s.body, "")
			if got.status != s.status {
				t.Fatalf("got %d %s; want %d", got.status, got.text, s.status)
			}
			if job := guidOf(got); s.status == 202 {
				w.runJobs(t)
				w.jobEnds(t, job, "COMPLETE")
			}
			if s.gone != "" {
				w.run(t, []step{{method: "GET", path: s.gone, status: 404}})
			}
			if held.statements() > maxHeld {
				t.Errorf("%s; want at most %d statements", held, maxHeld)
			}
			if held.transactions() < s.least {
				t.Errorf("%s; want at least %d transactions", held, s.least)
			}
			t.Log(held)
		})
	}
}
