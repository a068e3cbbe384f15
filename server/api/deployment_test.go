package api

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"cupola/runtime/lrp"
	"cupola/server/control/quota"
	"cupola/server/deploy"
	"cupola/server/desire"
	"cupola/store"
	"cupola/store/cf"
)

// deploying runs the deployments of a world whose instances start at once.
func deploying(t *testing.T) *world {
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{}, 2)
	go func() {
		defer func() { done <- struct{}{} }()
		loop := deploy.New(deploy.Config{Store: w.store, Within: quota.WithinProcesses(false), Log: slog.New(slog.DiscardHandler)})
		if err := loop.Run(ctx); err != nil {
			t.Error(err)
		}
	}()
	go func() {
		defer func() { done <- struct{}{} }()
		w.instances(ctx)
	}()
	t.Cleanup(func() { cancel(); <-done; <-done })
	return w
}

// instances makes the instances be what is desired, whenever that changes.
func (w *world) instances(ctx context.Context) {
	w.derive(ctx, instantiate)
}

// derive writes now, and whenever what write has read may have changed.
func (w *world) derive(ctx context.Context, write func(*store.Tx) error) {
	reads := w.store.Reads()
	defer reads.Close()
	for ctx.Err() == nil {
		if err := reads.Noting(w.store.Write)(ctx, write); err != nil && ctx.Err() == nil {
			w.t.Error(err)
		}
		select {
		case <-reads.Stale():
		case <-ctx.Done():
		}
	}
}

func instantiate(tx *store.Tx) error {
	wanted := map[lrp.Key]bool{}
	apps, err := store.Apps.By(tx, "states", string(cf.Started))
	if err != nil {
		return err
	}
	for _, a := range apps {
		processes, err := store.Processes.By(tx, "app_guids", a.GUID)
		if err != nil {
			return err
		}
		for _, p := range processes {
			for i := range p.Instances {
				wanted[lrp.Key{ProcessGUID: desire.ProcessGUID(p, a), Index: i}] = true
			}
		}
	}
	rows, err := store.ActualLRPs.All(tx)
	for _, r := range rows {
		if wanted[r.Key] {
			delete(wanted, r.Key)
		} else if _, err := store.ActualLRPs.Delete(tx, *r); err != nil {
			return err
		}
	}
	for key := range wanted {
		err := store.ActualLRPs.Insert(tx, lrp.Actual{Key: key, Domain: lrp.DomainApps, InstanceGUID: fmt.Sprint(key), CellID: "cell", State: lrp.Running, Since: tx.Now, Ready: true, Address: "10.255.0.2"})
		if err != nil {
			return err
		}
	}
	return err
}

// ends waits until a deployment has a status.
func (w *world) ends(t *testing.T, name, value, reason string) {
	t.Helper()
	want := fmt.Sprintf(`"value":"%s"`, value)
	because := fmt.Sprintf(`"reason":"%s"`, reason)
	got := ""
	err := w.store.Until(t.Context(), func(tx *store.Tx) (bool, error) {
		_, err := store.Deployments.All(tx)
		got = w.ask("admin", "GET", w.fill("/v3/deployments/{"+name+"}"), "", "").text
		return strings.Contains(got, want) && strings.Contains(got, because), err
	})
	if err != nil || t.Context().Err() != nil {
		t.Fatalf("got %v, %s; want %s %s", err, got, value, reason)
	}
}

const ofApp1 = `"relationships": {"app": {"data": {"guid": "app-1"}}}`

func TestRollingDeployment(t *testing.T) {
	w := deploying(t)
	w.run(t, []step{
		{method: "POST", path: "/v3/apps/app-1/actions/start", status: 200},
		{method: "POST", path: "/v3/processes/app-1/actions/scale", body: `{"instances": 3}`, status: 202},
		{method: "PATCH", path: "/v3/apps/app-1/environment_variables", body: `{"var": {"A": "1"}}`, status: 200},
		{method: "POST", path: "/v3/placement_pools", body: `{"name": "a", "require": ["staging"], "relationships": {"spaces": {"data": [{"guid": "space-1"}]}}}`, status: 201},
		{method: "GET", path: "/v3/processes/app-1", status: 200, want: `{"placement": {"outdated": true}}`},
		{as: "space_supporter", method: "POST", path: "/v3/deployments", body: `{` + ofApp1 + `, "options": {"max_in_flight": 2, "web_instances": null}, "metadata": {"labels": {"a": "b"}}}`, status: 201, save: "d",
			want: `{"strategy": "rolling", "options": {"max_in_flight": 2}, "droplet": {"guid": "droplet-1"}, "previous_droplet": {"guid": "droplet-1"}, "new_processes": [{"type": "web"}],
				"status": {"value": "ACTIVE", "reason": "DEPLOYING"}, "revision": {"version": 2}, "metadata": {"labels": {"a": "b"}}, "links": {"cancel": {"method": "POST"}}}`},
	})
	w.ends(t, "d", "FINALIZED", "DEPLOYED")
	w.run(t, []step{
		{method: "GET", path: "/v3/apps/app-1/processes?types=web", status: 200, want: `{"resources": [{"instances": 3, "type": "web"}]}`},
		{method: "GET", path: "/v3/apps/app-1/processes/web/stats", status: 200, want: `{"resources": [{"state": "RUNNING"}, {"state": "RUNNING"}, {"state": "RUNNING"}]}`},
		{method: "GET", path: "/v3/apps/app-1/processes/web", status: 200, want: `{"placement": {"pool": "a", "require": ["staging"], "outdated": false}}`},
		{method: "GET", path: "/v3/audit_events?types=audit.app.deployment.create", status: 200, want: `{"resources": [{"data": {"type": null, "strategy": "rolling", "droplet_guid": "droplet-1", "request": {"options": {"max_in_flight": 2}}}}]}`},
		{method: "GET", path: "/v3/processes/app-1", status: 404, want: detail(10010, "Process not found")},
		{method: "GET", path: "/v3/apps/app-1/revisions/deployed", status: 200, want: `{"resources": [{"version": 2, "description": "New environment variables deployed. New process type 'worker' added."}]}`},
		{method: "GET", path: "/v3/deployments?app_guids=app-1&status_values=ACTIVE", status: 200, want: `{"resources": []}`},
		{method: "GET", path: "/v3/deployments?states=DEPLOYED&status_reasons=DEPLOYED,SUPERSEDED&label_selector=a=b", status: 200, want: `{"resources": [{"strategy": "rolling"}]}`},
		{method: "POST", path: "/v3/deployments/{d}/actions/cancel", status: 422, want: detail(10008, "Cannot cancel a deployment with status: FINALIZED and reason: DEPLOYED")},
		{method: "POST", path: "/v3/deployments/{d}/actions/continue", status: 422, want: detail(10008, "Cannot continue a deployment with status: FINALIZED and reason: DEPLOYED")},
		{as: "space_auditor", method: "POST", path: "/v3/deployments/{d}/actions/cancel", status: 404, want: detail(10010, "Deployment not found")},
	})
}

func TestCanaryDeployment(t *testing.T) {
	w := deploying(t)
	w.run(t, []step{
		{method: "POST", path: "/v3/apps/app-1/actions/start", status: 200},
		{method: "POST", path: "/v3/processes/app-1/actions/scale", body: `{"instances": 4}`, status: 202},
		{method: "POST", path: "/v3/deployments", body: `{` + ofApp1 + `, "strategy": "canary", "options": {"canary": {"steps": [{"instance_weight": 50}, {"instance_weight": 100}]}}}`, status: 201, save: "d",
			want: `{"options": {"max_in_flight": 1, "canary": {"steps": [{"instance_weight": 50}, {"instance_weight": 100}]}}, "status": {"canary": {"steps": {"current": 1, "total": 2}}}}`},
	})
	w.ends(t, "d", "ACTIVE", "PAUSED")
	w.run(t, []step{
		{method: "GET", path: "/v3/apps/app-1/processes?types=web", status: 200, want: `{"resources": [{"guid": "app-1", "instances": 3}, {"instances": 2}]}`},
		{method: "POST", path: "/v3/apps/app-1/processes/web/actions/scale", body: `{"instances": 2}`, status: 422, want: detail(10008, "Cannot scale this process while a deployment is in flight.")},
		{method: "PATCH", path: "/v3/processes/app-1", body: `{"command": "x"}`, status: 422, want: detail(10008, "Cannot update this process while a deployment is in flight.")},
		{method: "PATCH", path: "/v3/apps/app-1/relationships/current_droplet", body: `{"data": {"guid": "droplet-1"}}`, status: 422,
			want: detail(10008, "Unable to assign current droplet while the app has a deployment in progress. Wait for the deployment to complete or cancel it.")},
		{method: "POST", path: "/v3/deployments/{d}/actions/continue", status: 200},
	})
	w.ends(t, "d", "ACTIVE", "PAUSED")
	w.run(t, []step{
		{method: "GET", path: "/v3/deployments/{d}", status: 200, want: `{"status": {"canary": {"steps": {"current": 2, "total": 2}}}, "links": {"continue": {"method": "POST"}}}`},
		{method: "POST", path: "/v3/deployments/{d}/actions/cancel", status: 200},
	})
	w.ends(t, "d", "FINALIZED", "CANCELED")
	w.run(t, []step{
		{method: "GET", path: "/v3/apps/app-1/processes?types=web", status: 200, want: `{"resources": [{"guid": "app-1", "instances": 4}]}`},
	})
}

func TestWhatCannotBeDeployed(t *testing.T) {
	w := newWorld(t)
	w.write(func(tx *store.Tx) error { return seedApp(tx, "app-2", "other") })
	post := func(body, want string) step {
		return step{method: "POST", path: "/v3/deployments", body: body, status: 422, want: detail(10008, want)}
	}
	w.run(t, []step{
		{as: "nobody", method: "POST", path: "/v3/deployments", body: `{` + ofApp1 + `}`, status: 422, want: detail(10008, "Unable to use app. Ensure that the app exists and you have access to it.")},
		post(`{`+ofApp1+`, "strategy": "potato"}`, "Strategy 'potato' is not a supported deployment strategy"),
		post(`{`+ofApp1+`, "droplet": {"guid": "droplet-1"}, "revision": {"guid": "x"}}`, "Droplet Cannot set both fields 'droplet' and 'revision'"),
		post(`{`+ofApp1+`, "droplet": {"guid": "droplet-2"}}`, "Unable to assign current droplet. Ensure the droplet exists and belongs to this app."),
		post(`{`+ofApp1+`, "revision": {"guid": "x"}}`, "The revision does not exist"),
		post(`{`+ofApp1+`, "options": 3}`, "Options must be an object"),
		post(`{`+ofApp1+`, "options": {"potato": 3}}`, "Options has unsupported key(s): potato"),
		post(`{`+ofApp1+`, "options": {"max_in_flight": 0}}`, "Max in flight must be an integer greater than 0"),
		post(`{`+ofApp1+`, "options": {"max_in_flight": "many"}}`, "Max in flight must be an integer greater than 0"),
		post(`{`+ofApp1+`, "options": {"web_instances": -1}}`, "Web instances must be greater than or equal to 0"),
		post(`{`+ofApp1+`, "options": {"web_instances": "many"}}`, "Web instances is not a number"),
		post(`{`+ofApp1+`, "options": {"memory_in_mb": 1.5}}`, "Memory in mb must be an integer"),
		post(`{`+ofApp1+`, "options": {"canary": 1}, "strategy": "canary"}`, "Options canary must be an object"),
		post(`{`+ofApp1+`, "options": {"canary": {}}}`, "Options canary are only valid for Canary deployments"),
		post(`{`+ofApp1+`, "options": {"canary": {"steps": [1]}}, "strategy": "canary"}`, "Options canary steps must be an array of objects"),
		post(`{`+ofApp1+`, "options": {"canary": {"steps": [{"instance_weight": 101}]}}, "strategy": "canary"}`, "Options canary steps instance weight must be an Integer between 1-100 (inclusive)"),
		post(`{`+ofApp1+`, "options": {"canary": {"steps": [{"instance_weight": 50}, {"instance_weight": 20}]}}, "strategy": "canary"}`, "Options canary steps instance weight must be sorted in ascending order"),
		{method: "PATCH", path: "/v3/apps/app-1/features/revisions", body: `{"enabled": false}`, status: 200},
		post(`{`+ofApp1+`, "revision": {"guid": "x"}}`, "Cannot create deployment from a revision for an app without revisions enabled"),
	})
}

// TestDeploymentOfAStoppedApp: there is nothing to replace.
func TestDeploymentOfAStoppedApp(t *testing.T) {
	w := deploying(t)
	w.run(t, []step{
		{method: "POST", path: "/v3/deployments", body: `{` + ofApp1 + `, "options": {"web_instances": 2, "memory_in_mb": 64}}`, status: 201,
			want: `{"status": {"value": "FINALIZED", "reason": "DEPLOYED"}, "new_processes": [], "options": {"web_instances": 2, "memory_in_mb": 64}, "revision": {"version": 1}}`},
		{method: "GET", path: "/v3/apps/app-1", status: 200, want: `{"state": "STARTED"}`},
		{method: "GET", path: "/v3/processes/app-1", status: 200, want: `{"instances": 2, "memory_in_mb": 64}`},
		{method: "GET", path: "/v3/apps/app-1/revisions/deployed", status: 200, want: `{"resources": [{"version": 1}]}`},
	})
}

func firstRevision(t *testing.T, w *world) string {
	t.Helper()
	guid := ""
	err := w.store.Read(t.Context(), func(tx *store.Tx) error {
		r, err := store.Revisions.First(tx, store.Query{})
		if err == nil {
			guid = r.GUID
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return guid
}

// TestSupersededDeployment begins a deployment while a canary of another one
// pauses, and stops the app meanwhile.
func TestSupersededDeployment(t *testing.T) {
	w := deploying(t)
	w.run(t, []step{
		{method: "POST", path: "/v3/apps/app-1/actions/start", status: 200},
		{method: "POST", path: "/v3/processes/app-1/actions/scale", body: `{"instances": 2}`, status: 202},
		{method: "POST", path: "/v3/deployments", body: `{` + ofApp1 + `, "strategy": "canary"}`, status: 201, save: "first"},
	})
	w.ends(t, "first", "ACTIVE", "PAUSED")
	w.run(t, []step{
		{method: "POST", path: "/v3/apps/app-1/actions/stop", status: 200},
		{method: "GET", path: "/v3/deployments/{first}", status: 200, want: `{"status": {"value": "ACTIVE", "reason": "PAUSED"}}`},
		{method: "POST", path: "/v3/apps/app-1/actions/start", status: 200},
		{method: "POST", path: "/v3/deployments", body: `{` + ofApp1 + `, "options": {"memory_in_mb": 99}}`, status: 201, save: "second"},
		{method: "GET", path: "/v3/deployments/{first}", status: 200, want: `{"status": {"value": "FINALIZED", "reason": "SUPERSEDED"}}`},
	})
	w.ends(t, "second", "FINALIZED", "DEPLOYED")
	w.run(t, []step{
		{method: "GET", path: "/v3/apps/app-1/processes?types=web", status: 200, want: `{"resources": [{"instances": 2, "memory_in_mb": 99}]}`},
		{method: "DELETE", path: "/v3/apps/app-1", status: 202},
		{method: "GET", path: "/v3/deployments", status: 200, want: `{"resources": []}`},
	})
}

// TestRollback goes back to a revision, and to one whose droplet is gone.
func TestRollback(t *testing.T) {
	w := deploying(t)
	w.run(t, []step{
		{method: "PATCH", path: "/v3/apps/app-1/environment_variables", body: `{"var": {"A": "1"}}`, status: 200},
		{method: "POST", path: "/v3/apps/app-1/sidecars", body: `{"name": "s", "command": "./s", "process_types": ["web"]}`, status: 201, save: "s"},
		{method: "POST", path: "/v3/apps/app-1/actions/start", status: 200},
		{method: "PATCH", path: "/v3/apps/app-1/environment_variables", body: `{"var": {"A": "2"}}`, status: 200},
		{method: "PATCH", path: "/v3/processes/app-1", body: `{"command": "./other"}`, status: 200},
		{method: "DELETE", path: "/v3/sidecars/{s}", status: 204},
		{method: "POST", path: "/v3/apps/app-1/actions/restart", status: 200},
		{method: "GET", path: "/v3/apps/app-1/revisions?order_by=-created_at", status: 200, want: `{"resources": [
			{"version": 2, "description": "Custom start command added for 'web' process. New environment variables deployed. Sidecars updated."},
			{"version": 1, "description": "Initial revision.", "processes": {"web": {"command": null}}, "sidecars": [{"name": "s"}]}]}`},
		{method: "GET", path: "/v3/apps/app-1/revisions?versions=1", status: 200, want: `{"resources": [{"version": 1}]}`},
	})
	w.saved["r1"] = firstRevision(t, w)
	w.run(t, []step{
		{method: "POST", path: "/v3/deployments", body: `{` + ofApp1 + `, "revision": {"guid": "{r1}"}}`, status: 201, save: "d", want: `{"revision": {"version": 3}}`},
	})
	w.ends(t, "d", "FINALIZED", "DEPLOYED")
	w.run(t, []step{
		{method: "GET", path: "/v3/apps/app-1/environment_variables", status: 200, want: `{"var": {"A": "1"}}`},
		{method: "GET", path: "/v3/apps/app-1/processes/web", status: 200, want: `{"command": "./run"}`},
		{method: "GET", path: "/v3/apps/app-1/sidecars", status: 200, want: `{"resources": [{"name": "s", "command": "./s"}]}`},
		{method: "GET", path: "/v3/apps/app-1/revisions/deployed", status: 200, want: `{"resources": [{"version": 3, "description": "Custom start command removed for 'web' process. New environment variables deployed. Sidecars updated. Rolled back to revision 1."}]}`},
		{method: "POST", path: "/v3/deployments", body: `{` + ofApp1 + `, "revision": {"guid": "{r1}"}}`, status: 422,
			want: detail(10008, "Unable to rollback. The code and configuration you are rolling back to is the same as the deployed revision.")},
		{method: "DELETE", path: "/v3/droplets/droplet-1", status: 422, want: detail(10008, "The droplet is currently used by the app")},
	})
	w.write(func(tx *store.Tx) error {
		d, err := store.Droplets.Get(tx, "droplet-1")
		if err != nil {
			return err
		}
		d.State = cf.DropletExpired
		return store.Droplets.Update(tx, d)
	})
	w.run(t, []step{
		{method: "GET", path: "/v3/apps/app-1/revisions?deployable=true", status: 200, want: `{"resources": []}`},
		{method: "POST", path: "/v3/deployments", body: `{` + ofApp1 + `, "revision": {"guid": "{r1}"}}`, status: 422,
			want: detail(10008, "Unable to deploy this revision, the droplet for this revision no longer exists.")},
	})
}

// TestDeploymentBeyondTheQuota is refused at once, or gets on no further and
// says why.
func TestDeploymentBeyondTheQuota(t *testing.T) {
	w := deploying(t)
	w.write(func(tx *store.Tx) error { return limitMemory(tx, 300) })
	w.run(t, []step{
		{method: "POST", path: "/v3/processes/app-1/actions/scale", body: `{"instances": 2, "memory_in_mb": 100}`, status: 202},
		{method: "POST", path: "/v3/apps/app-1/actions/start", status: 200},
		{method: "POST", path: "/v3/deployments", body: `{` + ofApp1 + `, "options": {"max_in_flight": 2}}`, status: 422,
			want: detail(10008, "memory quota_exceeded for organization org. This organization's quota may not be large enough to support rolling deployments or your configured max-in-flight.")},
		{method: "POST", path: "/v3/deployments", body: `{` + ofApp1 + `, "options": {"memory_in_mb": 200}}`, status: 422},
		{method: "POST", path: "/v3/deployments", body: `{` + ofApp1 + `}`, status: 201, save: "d"},
	})
	w.ends(t, "d", "FINALIZED", "DEPLOYED")
}

func limitMemory(tx *store.Tx, mb int) error {
	q, err := store.OrgQuotas.First(tx, store.Query{})
	if err != nil {
		return err
	}
	q.Limits.TotalMemoryMB = &mb
	return store.OrgQuotas.Update(tx, q)
}
