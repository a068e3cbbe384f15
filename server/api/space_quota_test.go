package api

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"cupola/server/control"
	"cupola/server/control/quota"
	"cupola/store"
	"cupola/store/cf"
)

func TestSpaceQuotas(t *testing.T) {
	w := newWorld(t)
	w.write(func(tx *store.Tx) error {
		return store.Spaces.Insert(tx, &cf.Space{Resource: guid("space-3"), Name: "next", OrgGUID: "org-1"})
	})
	quota := func(more string) string { return `{"name": "sq", ` + toOrg + more + `}` }
	const to = "/v3/space_quotas/{sq}/relationships/spaces"
	route := func(host string) string {
		return `{"host": "` + host + `", "relationships": {"space": {"data": {"guid": "space-1"}}, "domain": {"data": {"guid": "domain-1"}}}}`
	}
	w.run(t, []step{
		{method: "POST", path: "/v3/space_quotas", body: `{"name": "sq", "relationships": {"organization": {"data": {"guid": "none"}}}}`, status: 422,
			want: detail(10008, "Organization with guid 'none' does not exist, or you do not have access to it.")},
		{method: "POST", path: "/v3/space_quotas", body: `{` + toOrg + `}`, status: 422, want: detail(10008, "Name can't be blank")},
		{method: "POST", path: "/v3/space_quotas", body: quota(`, "apps": {"total_memory_in_mb": -1}`), status: 422, want: detail(10008, "Apps Total memory in mb must be greater than or equal to 0")},
		{method: "POST", path: "/v3/space_quotas", body: quota(`, "routes": {"total_reserved_ports": 300}`), status: 422, want: detail(10008,
			"Total reserved ports must be -1, 0, or a positive integer, must be less than or equal to total routes, and must be less than or equal to total reserved ports for the organization quota.")},
		{method: "POST", path: "/v3/space_quotas", body: quota(`, "domains": {"total_domains": 1}`), status: 422, want: detail(10008, "Unknown field(s): 'domains'")},
		{as: "org_manager", method: "POST", path: "/v3/space_quotas", body: quota(`, "apps": {"total_memory_in_mb": 2048, "per_process_memory_in_mb": 1024, "total_instances": 2, "per_app_tasks": 1}, "routes": {"total_routes": 2}`),
			status: 201, save: "sq", want: `{"name": "sq", "apps": {"total_memory_in_mb": 2048, "per_process_memory_in_mb": 1024, "total_instances": 2, "per_app_tasks": 1, "log_rate_limit_in_bytes_per_second": null},
			"services": {"paid_services_allowed": true, "total_service_instances": null, "total_service_keys": null}, "routes": {"total_routes": 2, "total_reserved_ports": null},
			"relationships": {"organization": {"data": {"guid": "org-1"}}, "spaces": {"data": []}},
			"links": {"self": {"href": "{url}/v3/space_quotas/{sq}"}, "organization": {"href": "{url}/v3/organizations/org-1"}}}`},
		{method: "POST", path: "/v3/space_quotas", body: quota(""), status: 422, want: detail(10008, "Space Quota 'sq' already exists.")},
		{as: "space_developer", method: "GET", path: "/v3/space_quotas/{sq}", status: 404, want: detail(10010, "Space quota not found")},
		{method: "POST", path: to, body: `{"data": [{"guid": "none"}]}`, status: 422, want: detail(10008, `Spaces with guids ["none"] do not exist, or you do not have access to them.`)},
		{method: "POST", path: to, body: `{"data": [{"guid": "space-2"}]}`, status: 422, want: detail(10008, "Space quotas cannot be applied outside of their owning organization.")},
		{as: "org_manager", method: "POST", path: to, body: `{"data": [{"guid": "space-1"}]}`, status: 200, want: `{"data": [{"guid": "space-1"}], "links": {"self": {"href": "{url}` + to + `"}}}`},
		{as: "space_developer", method: "GET", path: "/v3/space_quotas?space_guids=space-1&organization_guids=org-1&names=sq", status: 200, want: `{"pagination": {"total_results": 1}}`},
		{method: "GET", path: "/v3/spaces/space-1", status: 200, want: `{"relationships": {"quota": {"data": {"guid": "{sq}"}}}}`},
		{method: "DELETE", path: "/v3/space_quotas/{sq}", status: 422, want: detail(10008, "This quota is applied to one or more spaces. Remove this quota from all spaces before deleting.")},

		{method: "POST", path: "/v3/apps/app-1/actions/start", status: 200},
		{method: "POST", path: "/v3/processes/app-1/actions/scale", body: `{"instances": 3}`, status: 422, want: detail(10008, "memory space_quota_exceeded, app_instance_limit space_app_instance_limit_exceeded")},
		{method: "POST", path: "/v3/processes/app-1/actions/scale", body: `{"memory_in_mb": 1500}`, status: 422, want: detail(10008, "memory space_instance_memory_limit_exceeded")},
		{method: "POST", path: "/v3/processes/app-1/actions/scale", body: `{"instances": 2}`, status: 202},
		{method: "POST", path: "/v3/apps/app-1/tasks", body: `{"command": "x"}`, status: 422, want: detail(10008, "memory_in_mb exceeds space memory quota")},
		{method: "POST", path: "/v3/processes/app-1/actions/scale", body: `{"memory_in_mb": 64}`, status: 202},
		{method: "POST", path: "/v3/apps/app-1/tasks", body: `{"command": "x", "memory_in_mb": 1025}`, status: 422, want: detail(10008, "memory_in_mb exceeds space instance memory quota")},
		{method: "POST", path: "/v3/apps/app-1/tasks", body: `{"command": "x", "memory_in_mb": 10}`, status: 202},
		{method: "POST", path: "/v3/apps/app-1/tasks", body: `{"command": "x", "memory_in_mb": 10}`, status: 422, want: detail(10008, "app_task_limit quota exceeded")},
		{method: "POST", path: "/v3/routes", body: route("a"), status: 201},
		{method: "POST", path: "/v3/routes", body: route("b"), status: 422, want: detail(10008, "Routes quota exceeded for space 'dev'.")},
		{method: "POST", path: "/v3/routes", body: strings.Replace(route("b"), "space-1", "space-3", 1), status: 201},
		{as: "space_auditor", method: "GET", path: "/v3/spaces/space-1/usage_summary", status: 200, want: `{"usage_summary": {"started_instances": 2, "memory_in_mb": 138, "routes": 2, "per_app_tasks": 1, "domains": 0,
			"service_instances": 0, "reserved_ports": 0, "service_keys": 0}, "links": {"self": {"href": "{url}/v3/spaces/space-1/usage_summary"}, "space": {"href": "{url}/v3/spaces/space-1"}}}`},

		{method: "POST", path: "/v3/space_quotas", body: `{"name": "other", ` + toOrg + `}`, status: 201, save: "other"},
		{method: "PATCH", path: "/v3/space_quotas/{other}", body: `{"name": "sq"}`, status: 422, want: detail(10008, "Space Quota 'sq' already exists.")},
		{as: "org_manager", method: "PATCH", path: "/v3/space_quotas/{sq}", body: `{"name": "renamed", "apps": {"total_instances": null}, "services": {"paid_services_allowed": false}}`, status: 200,
			want: `{"name": "renamed", "apps": {"total_instances": null, "total_memory_in_mb": 2048}, "services": {"paid_services_allowed": false}}`},
		{method: "DELETE", path: to + "/space-3", status: 422, want: detail(10008, "Unable to remove quota from space with guid 'space-3'. Ensure the space quota is applied to this space.")},
		{as: "org_manager", method: "DELETE", path: to + "/space-1", status: 204},
		{method: "GET", path: "/v3/spaces/space-1", status: 200, want: `{"relationships": {"quota": {"data": null}}}`},
		{as: "org_manager", method: "DELETE", path: "/v3/space_quotas/{sq}", status: 202},
		{method: "GET", path: "/v3/space_quotas/{sq}", status: 404},
		{method: "GET", path: "/v3/audit_events?types=audit.space_quota.create,audit.space_quota.update,audit.space_quota.apply,audit.space_quota.remove,audit.space_quota.delete", status: 200,
			want: `{"resources": [{"type": "audit.space_quota.create", "target": {"type": "space_quota", "name": "sq"}, "organization": {"guid": "org-1"}, "space": null, "data": {"request": {"name": "sq"}}},
			{"type": "audit.space_quota.apply", "space": {"guid": "space-1"}, "data": {"space_guid": "space-1", "space_name": "dev"}}, {"type": "audit.space_quota.create"},
			{"type": "audit.space_quota.update", "data": {"request": {"name": "renamed"}}}, {"type": "audit.space_quota.remove"}, {"type": "audit.space_quota.delete"}]}`},
	})
}

// TestBothQuotas breaks the quota of a space and that of its org at once.
func TestBothQuotas(t *testing.T) {
	w := newWorld(t)
	limits := `"apps": {"total_memory_in_mb": 1024, "log_rate_limit_in_bytes_per_second": 1000}, "routes": {"total_routes": 1}`
	w.run(t, []step{
		{method: "PATCH", path: "/v3/processes/app-1", body: `{}`, status: 200},
		{method: "POST", path: "/v3/processes/app-1/actions/scale", body: `{"log_rate_limit_in_bytes_per_second": -1}`, status: 202},
		{method: "POST", path: "/v3/organization_quotas", body: `{"name": "q", ` + limits + `}`, status: 201, save: "q"},
		{method: "POST", path: "/v3/organization_quotas/{q}/relationships/organizations", body: `{"data": [{"guid": "org-1"}]}`, status: 422,
			want: detail(10008, "Current usage exceeds new quota values. The org(s) being assigned this quota contain apps running with an unlimited log rate limit.")},
		{method: "POST", path: "/v3/space_quotas", body: `{"name": "s", ` + limits + `, ` + toOrg + `}`, status: 201, save: "s"},
		{method: "POST", path: "/v3/space_quotas/{s}/relationships/spaces", body: `{"data": [{"guid": "space-1"}]}`, status: 422,
			want: detail(10008, "Current usage exceeds new quota values. The space(s) being assigned this quota contain apps running with an unlimited log rate limit.")},
		{method: "PATCH", path: "/v3/space_quotas/{s}", body: `{"apps": {"log_rate_limit_in_bytes_per_second": null}}`, status: 200},
		{method: "POST", path: "/v3/space_quotas/{s}/relationships/spaces", body: `{"data": [{"guid": "space-1"}]}`, status: 200},
		{method: "PATCH", path: "/v3/space_quotas/{s}", body: `{"apps": {"log_rate_limit_in_bytes_per_second": 1000}}`, status: 422,
			want: detail(10008, "Current usage exceeds new quota values. This quota is applied to space 'dev' which contains apps running with an unlimited log rate limit.")},
		{method: "POST", path: "/v3/processes/app-1/actions/scale", body: `{"log_rate_limit_in_bytes_per_second": 500}`, status: 202},
		{method: "PATCH", path: "/v3/space_quotas/{s}", body: `{"apps": {"log_rate_limit_in_bytes_per_second": 1000}}`, status: 200},
		{method: "POST", path: "/v3/organization_quotas/{q}/relationships/organizations", body: `{"data": [{"guid": "org-1"}]}`, status: 200},
		{method: "POST", path: "/v3/apps/app-1/actions/start", status: 200},
		{method: "POST", path: "/v3/processes/app-1/actions/scale", body: `{"instances": 3}`, status: 422, want: detail(10008,
			"memory space_quota_exceeded, memory quota_exceeded, log_rate_limit exceeds space log rate quota, log_rate_limit exceeds organization log rate quota")},
		{method: "POST", path: "/v3/processes/app-1/actions/scale", body: `{"log_rate_limit_in_bytes_per_second": -1}`, status: 422, want: detail(10008,
			"log_rate_limit cannot be unlimited in space 'dev'., log_rate_limit cannot be unlimited in organization 'org'.")},
		{method: "POST", path: "/v3/routes", body: `{"host": "b", "relationships": {"space": {"data": {"guid": "space-1"}}, "domain": {"data": {"guid": "domain-1"}}}}`, status: 422,
			want: detail(10008, "Routes quota exceeded for space 'dev'.")},
	})
}

// TestQuotasOfSleepers lets an app sleep, which a quota counts, or not. Scaled, it is awake.
func TestQuotasOfSleepers(t *testing.T) {
	w := newWorld(t)
	usage := func(mb int) step {
		return step{method: "GET", path: "/v3/spaces/space-1/usage_summary", status: 200, want: fmt.Sprintf(`{"usage_summary": {"memory_in_mb": %d}}`, mb)}
	}
	scale := step{method: "POST", path: "/v3/processes/app-1/actions/scale", body: `{"instances": 2}`, status: 422, want: detail(10008, "memory space_quota_exceeded")}
	task := func(status int) step {
		return step{method: "POST", path: "/v3/apps/app-1/tasks", body: `{"command": "x", "memory_in_mb": 512}`, status: status}
	}
	w.run(t, []step{
		{method: "POST", path: "/v3/apps/app-1/actions/start", status: 200},
		{method: "POST", path: "/v3/space_quotas", body: `{"name": "s", "apps": {"total_memory_in_mb": 1024}, ` + toOrg + `}`, status: 201, save: "s"},
		{method: "POST", path: "/v3/space_quotas/{s}/relationships/spaces", body: `{"data": [{"guid": "space-1"}]}`, status: 200},
	})
	w.write(func(tx *store.Tx) error {
		return store.Sleeps.Insert(tx, &cf.Sleep{ProcessGUID: "app-1", AppGUID: "app-1", Instances: 1, State: cf.SleepFrozen})
	})
	w.run(t, []step{usage(1024), scale, task(422)})
	w.api.QuotaAwakeOnly = true
	w.run(t, []step{usage(0), scale, task(202), usage(512)})
}

func TestUnboundedIn(t *testing.T) {
	const end = " apps running with an unlimited log rate limit."
	for _, c := range []struct {
		names []string
		want  string
	}{
		{[]string{"a"}, "org 'a' which contains"},
		{[]string{"a", "b"}, "orgs 'a', 'b' which contain"},
		{[]string{"a", "b", "c", "d"}, "orgs 'a', 'b' and 2 other orgs which contain"},
	} {
		if got := quota.UnboundedIn("org", c.names).Error(); !strings.HasSuffix(got, c.want+end) {
			t.Errorf("%v: got %s", c.names, got)
		}
	}
	if err := quota.UnboundedIn("org", nil); err != nil {
		t.Errorf("got %v; want nil", err)
	}
}

// TestQuotasAtOnce sends 50 requests at a time at quotas with room for a few of
// them: exactly those succeed.
func TestQuotasAtOnce(t *testing.T) {
	const requests, room = 50, 7
	w := newWorld(t)
	w.run(t, []step{
		{method: "POST", path: "/v3/organization_quotas", body: fmt.Sprintf(`{"name": "q", "apps": {"total_memory_in_mb": %d}, "routes": {"total_routes": %d}}`, room*16, room+1), status: 201, save: "q"},
		{method: "POST", path: "/v3/organization_quotas/{q}/relationships/organizations", body: `{"data": [{"guid": "org-1"}]}`, status: 200},
		{method: "POST", path: "/v3/space_quotas", body: fmt.Sprintf(`{"name": "s", "apps": {"per_app_tasks": %d}, %s}`, room, toOrg), status: 201, save: "s"},
		{method: "POST", path: "/v3/space_quotas/{s}/relationships/spaces", body: `{"data": [{"guid": "space-1"}]}`, status: 200},
	})
	for _, c := range []struct{ name, path, body, refused string }{
		{"routes", "/v3/routes", `{"host": "h%d", "relationships": {"space": {"data": {"guid": "space-1"}}, "domain": {"data": {"guid": "domain-1"}}}}`, "Routes quota exceeded for organization 'org'."},
		{"tasks", "/v3/apps/app-1/tasks", `{"command": "x", "name": "t%d", "memory_in_mb": 16}`, "memory_in_mb exceeds organization memory quota, app_task_limit quota exceeded"},
	} {
		if made := w.atOnce(t, requests, c.refused, func(i int) (string, string) { return c.path, fmt.Sprintf(c.body, i) }); made != room {
			t.Errorf("%s: %d were made; want %d", c.name, made, room)
		}
	}
	w.run(t, []step{{method: "GET", path: "/v3/spaces/space-1/usage_summary", status: 200,
		want: fmt.Sprintf(`{"usage_summary": {"routes": %d, "per_app_tasks": %d, "memory_in_mb": %d}}`, room+1, room, room*16)}})
}

func TestSpaceServices(t *testing.T) {
	w := newWorld(t)
	w.write(seedServices)
	w.write(func(tx *store.Tx) error {
		none := 0
		q := &cf.SpaceQuota{Name: "s", OrgGUID: "org-1", Limits: cf.QuotaLimits{TotalServiceInstances: &none, TotalServiceKeys: &none}}
		s, err := store.Spaces.Get(tx, "space-1")
		if err != nil {
			return err
		}
		if err := store.SpaceQuotas.Insert(tx, q); err != nil {
			return err
		}
		s.QuotaGUID = q.GUID
		paid := &cf.ServicePlan{Resource: guid("plan-paid"), OfferingGUID: "offering-s", CatalogID: "paid", Name: "paid", Active: true, Public: true}
		return control.OrElse(store.Spaces.Update(tx, s), store.ServicePlans.Insert(tx, paid))
	})
	w.run(t, []step{
		{method: "POST", path: "/v3/service_instances", body: `{"type": "managed", "name": "x", ` + toSpacePlan("plan-s"), status: 422, want: detail(10008, "You have exceeded your space's services limit.")},
		{method: "POST", path: "/v3/service_instances", body: `{"type": "managed", "name": "x", ` + toSpacePlan("plan-paid"), status: 422,
			want: detail(10008, "The service instance cannot be created because paid service plans are not allowed for your space.")},
		{method: "POST", path: "/v3/service_credential_bindings", body: `{"type": "key", "name": "k", "relationships": {"service_instance": {"data": {"guid": "db-1"}}}}`, status: 422,
			want: detail(10008, "You have exceeded your space's limit for service binding of type key.")},
	})
}

// seedApps makes apps app-100 and on, as change has them.
func seedApps(tx *store.Tx, n int, change func(*cf.Process, *cf.App)) error {
	for i := range n {
		name := fmt.Sprintf("app-%d", 100+i)
		if err := seedApp(tx, name, name); err != nil {
			return err
		}
		p, err := store.Processes.Get(tx, name)
		if err != nil {
			return err
		}
		app, err := store.Apps.Get(tx, name)
		if err != nil {
			return err
		}
		change(p, app)
		if err := control.OrElse(store.Processes.Update(tx, p), store.Apps.Update(tx, app)); err != nil {
			return err
		}
	}
	return nil
}

// TestStartsAtOnce starts 50 apps at a time, and then scales one of those that
// runs to 50 sizes: memory and instances stay within the quotas.
func TestStartsAtOnce(t *testing.T) {
	const apps, room = 50, 7
	w := newWorld(t)
	w.write(func(tx *store.Tx) error {
		return seedApps(tx, apps, func(p *cf.Process, _ *cf.App) { p.MemoryMB = 16 })
	})
	w.run(t, []step{
		{method: "POST", path: "/v3/space_quotas", body: fmt.Sprintf(`{"name": "s", "apps": {"total_memory_in_mb": %d}, %s, "relationships": {"organization": {"data": {"guid": "org-1"}}, "spaces": {"data": [{"guid": "space-1"}]}}}`,
			room*16, `"routes": {}`), status: 201, save: "s", want: `{"relationships": {"spaces": {"data": [{"guid": "space-1"}]}}}`},
	})
	started := w.atOnce(t, apps, "memory space_quota_exceeded", func(i int) (string, string) { return fmt.Sprintf("/v3/apps/app-%d/actions/start", 100+i), "" })
	if started != room {
		t.Errorf("%d apps were started; want %d", started, room)
	}
	w.run(t, []step{
		{method: "PATCH", path: "/v3/space_quotas/{s}", body: fmt.Sprintf(`{"apps": {"total_memory_in_mb": null, "total_instances": %d}}`, 2*room), status: 200},
	})
	one := firstGUID(t, w.ask("admin", "GET", "/v3/app_usage_events?order_by=-created_at", "", "")) // the last that was started
	app := w.ask("admin", "GET", "/v3/app_usage_events/"+one, "", "").json.(map[string]any)["app"].(map[string]any)["guid"].(string)
	w.atOnce(t, apps, "app_instance_limit space_app_instance_limit_exceeded", func(i int) (string, string) {
		return "/v3/apps/" + app + "/processes/web/actions/scale", fmt.Sprintf(`{"instances": %d}`, i)
	})
	u := w.ask("admin", "GET", "/v3/spaces/space-1/usage_summary", "", "").json.(map[string]any)["usage_summary"].(map[string]any)
	if n := u["started_instances"].(float64); n > 2*room {
		t.Errorf("%v instances are wanted; the quota allows %d", n, 2*room)
	}
	w.run(t, []step{{method: "DELETE", path: "/v3/organizations/org-1", status: 202}})
	w.waits(t)
	w.run(t, []step{{method: "GET", path: "/v3/space_quotas/{s}", status: 404}})
}

// atOnce makes requests beside each other, and counts those that succeed; the
// others must be refused with the words.
func (w *world) atOnce(t *testing.T, n int, refused string, request func(i int) (path, body string)) int {
	t.Helper()
	var made atomic.Int32
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			path, body := request(i)
			switch got := w.ask("space_developer", "POST", path, body, ""); {
			case got.status < 300:
				made.Add(1)
			case got.status != 422 || !strings.Contains(got.text, refused):
				t.Errorf("%s: got %d %s; want %s", path, got.status, got.text, refused)
			}
		})
	}
	wg.Wait()
	return int(made.Load())
}

// TestServicesAtOnce asks for 50 service instances at a time, and for 50 keys of
// one: as many are made as the quota has room for.
func TestServicesAtOnce(t *testing.T) {
	const requests, room = 50, 7
	w := newWorld(t)
	w.write(seedServices)
	w.run(t, []step{{method: "POST", path: "/v3/space_quotas", body: fmt.Sprintf(`{"name": "s", "services": {"total_service_instances": %d, "total_service_keys": %d},
		"relationships": {"organization": {"data": {"guid": "org-1"}}, "spaces": {"data": [{"guid": "space-1"}]}}}`, room+2, room), status: 201}}) // two are there
	made := w.atOnce(t, requests, "You have exceeded your space's services limit.", func(i int) (string, string) {
		return "/v3/service_instances", fmt.Sprintf(`{"type": "managed", "name": "x%d", `, i) + toSpacePlan("plan-s")
	})
	keys := w.atOnce(t, requests, "You have exceeded your space's limit for service binding of type key.", func(i int) (string, string) {
		return "/v3/service_credential_bindings", fmt.Sprintf(`{"type": "key", "name": "k%d", "relationships": {"service_instance": {"data": {"guid": "db-1"}}}}`, i)
	})
	if made != room || keys != room {
		t.Errorf("%d service instances and %d keys were made; want %d of each", made, keys, room)
	}
}
