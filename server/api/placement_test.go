package api

import (
	"slices"
	"strings"
	"testing"

	"cupola/runtime/lrp"
	"cupola/server/desire"
	"cupola/store"
	"cupola/store/cf"
)

func TestPlacementPools(t *testing.T) {
	w := newWorld(t)
	long := strings.Repeat("x", 64)
	w.run(t, []step{
		{method: "GET", path: "/v3/placement_pools", status: 200, want: `{"resources": []}`},
		{method: "POST", path: "/v3/placement_pools", body: `{"name": "prod", "require": ["Production", "production"], "disallow": ["skynet"]}`, status: 201, save: "prod",
			want: `{"name": "prod", "require": ["production"], "disallow": ["skynet"], "default": false, "relationships": {"spaces": {"data": []}}}`},
		{method: "POST", path: "/v3/placement_pools", body: `{"name": "PROD"}`, status: 422, want: detail(10008, "Placement pool with name 'PROD' already exists.")},
		{method: "POST", path: "/v3/placement_pools", body: `{"require": ["a"]}`, status: 422, want: detail(10008, "Name can't be blank")},
		{method: "POST", path: "/v3/placement_pools", body: `{"name": "x", "require": [""]}`, status: 422, want: detail(10008, "Require must not hold an empty tag")},
		{method: "POST", path: "/v3/placement_pools", body: `{"name": "x", "disallow": ["` + long + `"]}`, status: 422, want: detail(10008, "Disallow tag '"+long+"' must be shorter than 64 characters")},
		// Nobody asks whether a cell can have both.
		{method: "POST", path: "/v3/placement_pools", body: `{"name": "odd", "require": ["a"], "disallow": ["a"], "default": true}`, status: 201, save: "odd", want: `{"default": true}`},
		{method: "PATCH", path: "/v3/placement_pools/{prod}", body: `{"default": true}`, status: 200, want: `{"default": true, "require": ["production"]}`},
		{method: "GET", path: "/v3/placement_pools?default=true", status: 200, want: `{"resources": [{"name": "prod"}]}`},
		{method: "POST", path: "/v3/placement_pools/{odd}/relationships/spaces", body: `{"data": [{"guid": "space-1"}]}`, status: 200, want: `{"data": [{"guid": "space-1"}]}`},
		{method: "POST", path: "/v3/placement_pools/{odd}/relationships/spaces", body: `{"data": [{"guid": "none"}]}`, status: 422, want: detail(10008, `Spaces with guids ["none"] do not exist.`)},
		{as: "space_auditor", method: "GET", path: "/v3/placement_pools?names=odd", status: 200, want: `{"resources": [{"name": "odd"}]}`},
		{method: "GET", path: "/v3/placement_pools?space_guids=space-1", status: 200, want: `{"resources": [{"name": "odd"}]}`},
		{method: "DELETE", path: "/v3/placement_pools/{odd}/relationships/spaces/space-2", status: 422},
		{method: "DELETE", path: "/v3/placement_pools/{odd}/relationships/spaces/space-1", status: 204},
		{as: "space_auditor", method: "GET", path: "/v3/placement_pools/{odd}", status: 404},
		{method: "POST", path: "/v3/placement_pools/{odd}/relationships/spaces", body: `{"data": [{"guid": "space-1"}]}`, status: 200},
		{method: "DELETE", path: "/v3/placement_pools/{odd}", status: 202},
		{method: "GET", path: "/v3/placement_pools?names=odd", status: 200, want: `{"resources": []}`},
	})
}

// TestPlacementPoolOfApp gives an app a pool of its own, which holds instead of its space's until it is taken away.
func TestPlacementPoolOfApp(t *testing.T) {
	w := newWorld(t)
	started := func(pool string) []step {
		return []step{
			{method: "POST", path: "/v3/apps/app-1/actions/restart", status: 200},
			{method: "GET", path: "/v3/processes/app-1", status: 200, want: `{"placement": {"pool": "` + pool + `", "outdated": false}}`},
		}
	}
	outdated := []step{{method: "GET", path: "/v3/processes/app-1", status: 200, want: `{"placement": {"outdated": true}}`}}
	w.run(t, slices.Concat([]step{
		{method: "POST", path: "/v3/placement_pools", body: `{"name": "space's", "require": ["a"], "relationships": {"spaces": {"data": [{"guid": "space-1"}]}}}`, status: 201},
		{method: "POST", path: "/v3/placement_pools", body: `{"name": "own", "require": ["b"]}`, status: 201, save: "own", want: `{"relationships": {"spaces": {"data": []}, "apps": {"data": []}}}`},
		{as: "space_auditor", method: "GET", path: "/v3/placement_pools/{own}", status: 404},
	}, started("space's"), []step{
		{method: "POST", path: "/v3/placement_pools/{own}/relationships/apps", body: `{"data": [{"guid": "none"}]}`, status: 422, want: detail(10008, `Apps with guids ["none"] do not exist.`)},
		{method: "POST", path: "/v3/placement_pools/{own}/relationships/apps", body: `{"data": [{"guid": "app-1"}]}`, status: 200, want: `{"data": [{"guid": "app-1"}]}`},
		{as: "space_auditor", method: "GET", path: "/v3/placement_pools/{own}", status: 200, want: `{"relationships": {"spaces": {"data": []}, "apps": {"data": [{"guid": "app-1"}]}}}`},
		{method: "DELETE", path: "/v3/placement_pools/{own}/relationships/apps/app-2", status: 422},
	}, outdated, started("own"), []step{
		{method: "POST", path: "/v3/apps/app-1/tasks", body: `{"command": "x"}`, status: 202, save: "task"},
		{method: "DELETE", path: "/v3/placement_pools/{own}/relationships/apps/app-1", status: 204},
	}, outdated, started("space's"), []step{
		{method: "POST", path: "/v3/placement_pools/{own}/relationships/apps", body: `{"data": [{"guid": "app-1"}]}`, status: 200},
	}, started("own"), []step{
		{method: "DELETE", path: "/v3/placement_pools/{own}", status: 202},
	}, outdated, started("space's")))
	w.write(func(tx *store.Tx) error {
		task, err := store.Tasks.Get(tx, w.saved["task"])
		if err != nil || task.Placement.Pool != "own" {
			t.Errorf("got %+v, %v; want the task placed like its app", task, err)
		}
		return nil
	})
}

// runs gives app-1 an instance.
func (w *world) runs() {
	w.t.Helper()
	w.write(func(tx *store.Tx) error {
		key, err := keyOfApp1(tx)
		if err != nil {
			return err
		}
		return store.ActualLRPs.Insert(tx, lrp.Actual{Key: key, State: lrp.Running, InstanceGUID: "i-" + key.ProcessGUID, Ready: true, Since: tx.Now})
	})
}

// keyOfApp1 is the key of the first instance of app-1.
func keyOfApp1(tx *store.Tx) (key lrp.Key, err error) {
	p, err := store.Processes.Get(tx, "app-1")
	if err != nil {
		return key, err
	}
	app, err := store.Apps.Get(tx, "app-1")
	if err != nil {
		return key, err
	}
	return lrp.Key{ProcessGUID: desire.ProcessGUID(p, app)}, nil
}

// TestAPoolHoldsFromTheNextStart changes where an app may run while it runs.
func TestAPoolHoldsFromTheNextStart(t *testing.T) {
	w := newWorld(t)
	old := detailOf(outdatedPlacement)
	w.run(t, []step{
		{method: "POST", path: "/v3/placement_pools", body: `{"name": "a", "require": ["staging"], "relationships": {"spaces": {"data": [{"guid": "space-1"}]}}}`, status: 201, save: "a"},
		{method: "POST", path: "/v3/apps/app-1/actions/start", status: 200},
		{method: "GET", path: "/v3/processes/app-1", status: 200, want: `{"placement": {"pool": "a", "require": ["staging"], "disallow": [], "isolation_segment": null, "outdated": false}}`},
	})
	w.runs()
	w.run(t, []step{
		{method: "GET", path: "/v3/processes/app-1/stats", status: 200, want: `{"resources": [{"state": "RUNNING", "details": null, "isolation_segment": null}]}`},
		{method: "PATCH", path: "/v3/placement_pools/{a}", body: `{"require": ["production"]}`, status: 200},
		{method: "GET", path: "/v3/processes/app-1", status: 200, want: `{"placement": {"require": ["staging"], "outdated": true}}`},
		{method: "GET", path: "/v3/processes/app-1/stats", status: 200, want: old},
		{method: "POST", path: "/v3/apps/app-1/actions/restart", status: 200},
		{method: "GET", path: "/v3/processes/app-1", status: 200, want: `{"placement": {"require": ["production"], "outdated": false}}`},
	})
	w.runs()
	w.run(t, []step{
		{method: "POST", path: "/v3/isolation_segments", body: `{"name": "Iso"}`, status: 201, save: "iso"},
		// A segment that no app here uses changes nothing for running apps.
		{method: "GET", path: "/v3/processes/app-1/stats", status: 200, want: `{"resources": [{"details": null}]}`},
		{method: "POST", path: "/v3/isolation_segments/{iso}/relationships/organizations", body: `{"data": [{"guid": "org-1"}]}`, status: 200},
		{method: "PATCH", path: "/v3/organizations/org-1/relationships/default_isolation_segment", body: `{"data": {"guid": "{iso}"}}`, status: 200},
		{method: "GET", path: "/v3/processes/app-1/stats", status: 200, want: old},
		{method: "POST", path: "/v3/apps/app-1/actions/restart", status: 200},
	})
	w.runs()
	w.run(t, []step{
		{method: "GET", path: "/v3/processes/app-1/stats", status: 200, want: `{"resources": [{"isolation_segment": "Iso", "details": null}]}`},
		{method: "PATCH", path: "/v3/spaces/space-1/relationships/isolation_segment", body: `{"data": {"guid": "` + cf.SharedSegment + `"}}`, status: 422},
		{method: "POST", path: "/v3/isolation_segments/" + cf.SharedSegment + "/relationships/organizations", body: `{"data": [{"guid": "org-1"}]}`, status: 200},
		{method: "PATCH", path: "/v3/spaces/space-1/relationships/isolation_segment", body: `{"data": {"guid": "` + cf.SharedSegment + `"}}`, status: 200},
		{method: "GET", path: "/v3/processes/app-1", status: 200, want: `{"placement": {"isolation_segment": "Iso", "outdated": true}}`},
		{method: "POST", path: "/v3/apps/app-1/actions/restart", status: 200},
		{method: "GET", path: "/v3/processes/app-1", status: 200, want: `{"placement": {"isolation_segment": null, "outdated": false}}`},
		{method: "POST", path: "/v3/apps/app-1/tasks", body: `{"command": "x"}`, status: 202, save: "task"},
	})
	w.write(func(tx *store.Tx) error {
		task, err := store.Tasks.Get(tx, w.saved["task"])
		if err != nil || task.Placement.Pool != "a" || strings.Join(task.Placement.Require, " ") != "production" || strings.Join(task.Placement.Others, " ") != "Iso" {
			t.Errorf("got %+v, %v; want the task placed like its space", task, err)
		}
		return nil
	})
}

func detailOf(text string) string {
	return `{"resources": [{"state": "RUNNING", "details": "` + text + `"}]}`
}

func TestIsolationSegments(t *testing.T) {
	w := newWorld(t)
	w.run(t, []step{
		{method: "PATCH", path: "/v3/isolation_segments/" + cf.SharedSegment, body: `{"name": "x"}`, status: 422, want: detail(10008, "Cannot update the shared Isolation Segment")},
		{method: "DELETE", path: "/v3/isolation_segments/" + cf.SharedSegment, status: 422, want: detail(10008, "Cannot delete the shared Isolation Segment")},
		{method: "POST", path: "/v3/isolation_segments", body: `{"name": "iso"}`, status: 201, save: "iso", want: `{"name": "iso"}`},
		{method: "POST", path: "/v3/isolation_segments", body: `{"name": "ISO"}`, status: 422, want: detail(10008, "Isolation Segment names are case insensitive and must be unique")},
		{method: "POST", path: "/v3/isolation_segments", body: `{"name": "a\u0007"}`, status: 422, want: detail(10008, "Isolation Segment names can only contain non-blank unicode characters")},
		{method: "PATCH", path: "/v3/isolation_segments/{iso}", body: `{"name": "iso2", "metadata": {"labels": {"a": "b"}}}`, status: 200, want: `{"name": "iso2", "metadata": {"labels": {"a": "b"}}}`},
		{as: "space_auditor", method: "GET", path: "/v3/isolation_segments/{iso}", status: 404},
		{method: "POST", path: "/v3/isolation_segments/{iso}/relationships/organizations", body: `{"data": [{"guid": "org-1"}, {"guid": "org-2"}]}`, status: 200, want: `{"data": [{"guid": "org-1"}, {"guid": "org-2"}]}`},
		{method: "POST", path: "/v3/isolation_segments/{iso}/relationships/organizations", body: `{"data": [{"guid": "none"}]}`, status: 422},
		{as: "space_auditor", method: "GET", path: "/v3/isolation_segments/{iso}/relationships/organizations", status: 200, want: `{"data": [{"guid": "org-1"}]}`},
		{as: "space_auditor", method: "GET", path: "/v3/isolation_segments/{iso}/organizations", status: 200, want: `{"resources": [{"guid": "org-1"}]}`},
		{method: "GET", path: "/v3/isolation_segments?organization_guids=org-2", status: 200, want: `{"resources": [{"name": "iso2"}]}`},
		{method: "PATCH", path: "/v3/spaces/space-1/relationships/isolation_segment", body: `{"data": {"guid": "{iso}"}}`, status: 200, want: `{"data": {"guid": "{iso}"}}`},
		{method: "GET", path: "/v3/isolation_segments/{iso}/relationships/spaces", status: 200, want: `{"data": [{"guid": "space-1"}]}`},
		{method: "DELETE", path: "/v3/isolation_segments/{iso}", status: 422, want: detail(10008, "Revoke the Organization entitlements for your Isolation Segment.")},
		{method: "DELETE", path: "/v3/isolation_segments/{iso}/relationships/organizations/org-1", status: 422,
			want: detail(10008, "Cannot remove the entitlement while this Isolation Segment is assigned to any Spaces. Currently assigned to: 'dev'")},
		{method: "PATCH", path: "/v3/spaces/space-1/relationships/isolation_segment", body: `{"data": null}`, status: 200},
		{method: "PATCH", path: "/v3/organizations/org-1/relationships/default_isolation_segment", body: `{"data": {"guid": "{iso}"}}`, status: 200},
		{method: "DELETE", path: "/v3/isolation_segments/{iso}/relationships/organizations/org-1", status: 422,
			want: detail(10008, "Cannot remove the entitlement while this Isolation Segment is assigned as the Default Isolation Segment for the Organization.")},
		{method: "PATCH", path: "/v3/organizations/org-1/relationships/default_isolation_segment", body: `{"data": null}`, status: 200},
		{method: "DELETE", path: "/v3/isolation_segments/{iso}/relationships/organizations/org-1", status: 204},
		{method: "DELETE", path: "/v3/organizations/org-2", status: 202},
		{method: "DELETE", path: "/v3/isolation_segments/{iso}", status: 204},
	})
}

func TestCellsAndTags(t *testing.T) {
	w := newWorld(t)
	w.write(func(tx *store.Tx) error {
		return store.ActualLRPs.Insert(tx, lrp.Actual{Key: lrp.Key{ProcessGUID: "process-1-version", Index: 2}, Domain: lrp.DomainApps, CellID: "one", InstanceGUID: "i-1", State: lrp.Running, Since: tx.Now})
	})
	w.run(t, []step{
		{method: "GET", path: "/v1/cells", status: 200, want: `[{"cell_id": "one", "tags": ["staging", "skynet"], "preloaded_rootfses": ["lucid64", "cflinuxfs2"], "rootfs_providers": ["docker"],
			"capacity": {"memory_mb": 512, "disk_mb": 1024, "containers": 250}, "used": {"memory_mb": 64, "disk_mb": 128, "containers": 1}, "problem": ""}, {"cell_id": "two", "problem": "there is no tunnel", "mend": "a route"}]`},
		{method: "GET", path: "/v1/cells?include=instances", status: 200, want: `[{"cell_id": "one", "instances": [{"domain": "cf-apps", "process_guid": "process-1", "index": 2, "instance_guid": "i-1", "state": "RUNNING"}]}, {"cell_id": "two", "instances": []}]`},
		{method: "GET", path: "/v1/tags", status: 200, want: `["skynet", "staging"]`},
		{as: "space_developer", method: "GET", path: "/v1/cells", status: 403},
		{as: "space_developer", method: "GET", path: "/v1/tags", status: 403},
	})
}
