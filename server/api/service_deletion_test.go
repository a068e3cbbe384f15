package api

import (
	"strings"
	"testing"

	"cupola/server/control"
	"cupola/store"
	"cupola/store/cf"
)

// TestDeletionsWaitForBrokers deletes an app and a space that have something of
// a broker's.
func TestDeletionsWaitForBrokers(t *testing.T) {
	w := newWorld(t)
	w.write(seedServices)
	w.run(t, []step{{method: "POST", path: "/v3/service_credential_bindings", body: bindTo("db-1", ""), status: 202}})
	w.brokered(cf.OpSucceeded, "")
	w.run(t, []step{
		{method: "DELETE", path: "/v3/apps/app-1", as: "space_developer", status: 202, save: "job"},
		{method: "GET", path: "/v3/jobs/{job}", status: 200, want: `{"operation": "app.delete", "state": "PROCESSING"}`},
	})
	w.waits(t)
	w.brokered(cf.OpFailed, "the broker is out")
	w.waits(t)
	w.run(t, []step{
		{method: "GET", path: "/v3/jobs/{job}", status: 200, want: `{"state": "FAILED", "errors": [{"code": 10008, "detail": "the broker is out"}]}`},
		{method: "GET", path: "/v3/apps/app-1", status: 200},
		{method: "DELETE", path: "/v3/apps/app-1", as: "space_developer", status: 202, save: "job"},
	})
	w.brokered(cf.OpSucceeded, "")
	w.waits(t)
	w.run(t, []step{
		{method: "GET", path: "/v3/jobs/{job}", status: 200, want: `{"state": "COMPLETE"}`},
		{method: "GET", path: "/v3/apps/app-1", status: 404},
		{method: "GET", path: "/v3/audit_events?types=audit.app.delete-request&order_by=-created_at", status: 200, want: `{"resources": [{"actor": {"guid": "user-space_developer"}}]}`},
		{method: "GET", path: "/v3/service_credential_bindings", status: 200, want: `{"resources": []}`},
		{method: "DELETE", path: "/v3/spaces/space-1", status: 202, save: "job"},
	})
	w.waits(t)
	w.run(t, []step{{method: "GET", path: "/v3/jobs/{job}", status: 200, want: `{"state": "PROCESSING"}`}})
	w.brokered(cf.OpFailed, "db is not to be had")
	w.waits(t)
	w.run(t, []step{
		{method: "GET", path: "/v3/jobs/{job}", status: 200, want: `{"state": "FAILED", "errors": [{"code": 290008, "title": "CF-SpaceDeletionFailed",
			"detail": "Deletion of space dev failed because one or more resources within could not be deleted.\n\n\tdb is not to be had\n\n\tdb is not to be had"}]}`},
		{method: "DELETE", path: "/v3/organizations/org-1", status: 202, save: "job"},
	})
	w.brokered(cf.OpSucceeded, "")
	w.waits(t)
	w.run(t, []step{
		{method: "GET", path: "/v3/jobs/{job}", status: 200, want: `{"state": "COMPLETE"}`},
		{method: "GET", path: "/v3/organizations/org-1", status: 404},
		{method: "GET", path: "/v3/service_instances", status: 200, want: `{"resources": []}`},
	})
}

func TestSharing(t *testing.T) {
	w := newWorld(t)
	w.write(seedServices)
	share := func(spaces ...string) string {
		var list []string
		for _, s := range spaces {
			list = append(list, `{"guid": "`+s+`"}`)
		}
		return `{"data": [` + strings.Join(list, ", ") + `]}`
	}
	const shares = "/v3/service_instances/db-1/relationships/shared_spaces"
	w.write(func(tx *store.Tx) error {
		if err := store.Roles.Insert(tx, &cf.Role{Type: cf.SpaceDeveloper, UserGUID: "user-org_user", OrgGUID: "org-1", SpaceGUID: "space-3"}); err != nil {
			return err
		}
		return store.Apps.Insert(tx, &cf.App{Resource: guid("app-3"), Name: "near", SpaceGUID: "space-3", State: cf.Stopped, Lifecycle: cf.Lifecycle{Type: cf.LifecycleBuildpack}})
	})
	bind := strings.ReplaceAll(bindTo("db-1", ""), "app-1", "app-3")
	w.run(t, []step{
		{method: "POST", path: shares, as: "space_developer", body: share("space-2", "none"), status: 422,
			want: detail(10008, "Unable to share service instance db1 with spaces ['space-2', 'none']. Ensure the spaces exist and that you have access to them.")},
		{method: "POST", path: shares, body: share("space-1"), status: 422,
			want: detail(10008, "Unable to share service instance 'db1' with space 'space-1'. Service instances cannot be shared into the space where they were created.")},
		{method: "POST", path: "/v3/service_instances/ups-1/relationships/shared_spaces", body: share("space-3"), status: 422, want: detail(10008, "Route services cannot be shared.")},
		{method: "POST", path: "/v3/service_credential_bindings", body: bind, status: 422, want: detail(10008, "The service instance and the app are in different spaces")},
		{method: "POST", path: shares, as: "space_developer", body: share("space-3"), status: 200, want: `{"data": [{"guid": "space-3"}], "links": {"self": {"href": "{url}` + shares + `"}}}`},
		{method: "POST", path: shares, body: share("space-3"), status: 422, want: detail(10008, "A service instance called db1 has already been shared with near.")},
		{method: "GET", path: shares + "?fields[space]=name,guid,relationships.organization&fields[space.organization]=name,guid", status: 200,
			want: `{"included": {"spaces": [{"guid": "space-3", "name": "near", "relationships": {"organization": {"data": {"guid": "org-1"}}}}], "organizations": [{"guid": "org-1", "name": "org"}]}}`},
		{method: "GET", path: shares + "?fields[space]=name", as: "space_auditor", status: 200, want: `{"included": {"spaces": [{}]}}`},
		{method: "POST", path: "/v3/service_credential_bindings", body: bind, status: 202},
		{method: "GET", path: "/v3/service_instances?space_guids=space-3&names=db1", status: 200, want: `{"resources": [{"guid": "db-1"}]}`},
		{method: "GET", path: shares + "/usage_summary", status: 200, want: `{"usage_summary": [{"space": {"guid": "space-3"}, "bound_app_count": 1}]}`},
		// Who has it by being shared with sees it, and not who else has.
		{method: "GET", path: "/v3/service_instances/db-1", as: "org_user", status: 200},
		{method: "GET", path: shares, as: "org_user", status: 404, want: detail(10010, "Service instance not found")},
		{method: "GET", path: shares + "/usage_summary", as: "org_user", status: 404, want: detail(10010, "Service instance not found")},
	})
	w.brokered(cf.OpSucceeded, "")
	asked := make(chan answer)
	go func() { asked <- w.ask("admin", "DELETE", shares+"/space-3", "", "") }()
	for len(w.brokered(cf.OpSucceeded, "")) == 0 {
		select {
		case got := <-asked:
			t.Fatalf("got %d %s; want it to wait", got.status, got.text)
		default:
		}
	}
	if got := <-asked; got.status != 204 {
		t.Errorf("got %d %s; want 204", got.status, got.text)
	}
	w.run(t, []step{
		{method: "GET", path: shares, status: 200, want: `{"data": []}`},
		{method: "GET", path: "/v3/service_credential_bindings?app_guids=app-3", status: 200, want: `{"resources": []}`},
		{method: "DELETE", path: shares + "/none", status: 422, want: detail(10008, "Unable to unshare service instance from space none. Ensure the space exists.")},
		{method: "DELETE", path: "/v3/spaces/space-3", status: 202}, // db-2 is shared with it
		{method: "GET", path: "/v3/service_instances/db-2/relationships/shared_spaces", status: 200, want: `{"data": []}`},
	})
}

func TestRouteServices(t *testing.T) {
	w := newWorld(t)
	w.write(seedServices)
	bind := func(instance, route string) string {
		return `{"relationships": {"route": {"data": {"guid": "` + route + `"}}, "service_instance": {"data": {"guid": "` + instance + `"}}}}`
	}
	w.run(t, []step{
		{method: "POST", path: "/v3/service_route_bindings", body: bind("ups-1", "route-1"), status: 422, want: detail(130008, "The route and service instance are already bound.")},
		{method: "POST", path: "/v3/service_route_bindings", body: bind("db-1", "route-2"), status: 422, want: detail(10008, "This service instance does not support route binding")},
		{method: "POST", path: "/v3/service_route_bindings", body: bind("none", "route-2"), status: 422, want: detail(10008, "The service instance could not be found: none")},
		{method: "POST", path: "/v3/service_route_bindings", body: bind("ups-1", "none"), status: 422, want: detail(10008, "The route could not be found: none")},
		{method: "POST", path: "/v3/service_route_bindings", body: bind("ups-1", "route-2"), status: 201, save: "rb",
			want: `{"route_service_url": "https://r.test", "last_operation": {"type": "create", "state": "succeeded"}, "relationships": {"route": {"data": {"guid": "route-2"}}, "service_instance": {"data": {"guid": "ups-1"}}}}`},
		{method: "PATCH", path: "/v3/service_instances/ups-1", body: `{"route_service_url": "https://new.test"}`, status: 200},
		{method: "GET", path: "/v3/service_route_bindings?route_guids=route-2&include=route,service_instance", status: 200,
			want: `{"resources": [{"guid": "{rb}", "route_service_url": "https://new.test"}], "included": {"routes": [{"guid": "route-2"}], "service_instances": [{"guid": "ups-1"}]}}`},
		{method: "GET", path: "/v3/service_route_bindings/{rb}/parameters", status: 400, want: detail(1004, "Bad request: user provided service instances do not support fetching route bindings parameters.")},
		{method: "DELETE", path: "/v3/spaces/space-1/routes?unmapped=true", status: 202},
		{method: "GET", path: "/v3/routes/route-2", status: 200}, // it leads to a service
		{method: "DELETE", path: "/v3/routes/route-2", status: 202},
		{method: "GET", path: "/v3/service_route_bindings/{rb}", status: 404},
		{method: "DELETE", path: "/v3/service_route_bindings/rb-1", status: 204},
	})
}

func TestServicesOfManifests(t *testing.T) {
	w := newWorld(t)
	w.write(seedServices)
	apply := func(services string) {
		got := w.ask("admin", "POST", "/v3/spaces/space-1/actions/apply_manifest", "applications:\n- name: hello\n  services:\n"+services, "application/x-yaml")
		w.saved["job"] = guidOf(got)
		if got.status != 202 {
			t.Fatalf("got %d %s", got.status, got.text)
		}
	}
	apply("  - ups\n  - name: db1\n    binding_name: b-1\n    parameters: {k: [1]}\n")
	w.run(t, []step{{method: "GET", path: "/v3/jobs/{job}", status: 200, want: `{"operation": "space.apply_manifest", "state": "PROCESSING"}`}})
	if works := w.brokered(cf.OpSucceeded, ""); len(works) != 1 || string(works[0].Parameters) != `{"k":[1]}` {
		t.Errorf("got %+v", works)
	}
	w.waits(t)
	w.run(t, []step{
		{method: "GET", path: "/v3/jobs/{job}", status: 200, want: `{"state": "COMPLETE"}`},
		{method: "GET", path: "/v3/service_credential_bindings?app_guids=app-1&service_instance_guids=db-1", status: 200, want: `{"resources": [{"name": "b-1"}]}`},
		{method: "GET", path: "/v3/apps/app-1/manifest", status: 200},
	})
	if got := w.ask("admin", "GET", "/v3/apps/app-1/manifest", "", ""); !strings.Contains(got.text, "services:\n") || !strings.Contains(got.text, "- db1\n") {
		t.Errorf("got %s; want the services", got.text)
	}
	apply("  - name: db2\n")
	w.brokered(cf.OpFailed, "no")
	w.waits(t)
	w.run(t, []step{{method: "GET", path: "/v3/jobs/{job}", status: 200, want: `{"state": "FAILED", "errors": [{"code": 10008, "detail": "For application 'hello': For service 'db2': no"}]}`}})
	apply("  - none\n")
	w.run(t, []step{{method: "GET", path: "/v3/jobs/{job}", status: 200, want: `{"state": "FAILED", "errors": [{"detail": "For application 'hello': Service instance 'none' not found"}]}`}})
}

func TestFieldsOfServices(t *testing.T) {
	w := newWorld(t)
	w.write(seedServices)
	w.run(t, []step{
		{method: "GET", path: "/v3/service_instances?order_by=name&fields[space]=guid&fields[service_plan]=name,relationships.service_offering&fields[service_plan.service_offering]=name,tags,description,documentation_url,relationships.service_broker&fields[service_plan.service_offering.service_broker]=name",
			status: 200, want: `{"included": {"spaces": [{"guid": "space-1"}], "service_plans": [{"name": "small", "relationships": {"service_offering": {"data": {"guid": "offering-s"}}}}],
			"service_offerings": [{"name": "db", "tags": ["relational"], "documentation_url": null, "relationships": {"service_broker": {"data": {"guid": "broker-s"}}}}], "service_brokers": [{"name": "shared"}]}}`},
		{method: "GET", path: "/v3/service_instances/ups-1?fields[service_plan]=name", status: 200},
		{method: "GET", path: "/v3/service_instances?fields[x]=name", status: 400, want: detail(10005, "The query parameter is invalid: Fields [x] valid resources are: 'space', 'space.organization', 'service_plan', 'service_plan.service_offering', 'service_plan.service_offering.service_broker'")},
		{method: "GET", path: "/v3/service_instances?fields[space]=x", status: 400, want: detail(10005, "The query parameter is invalid: Fields valid keys for 'space' are: 'guid', 'name', 'relationships.organization'")},
		{method: "GET", path: "/v3/service_instances?type=x", status: 400, want: detail(10005, "The query parameter is invalid: Type must be one of 'managed', 'user-provided'")},
		{method: "GET", path: "/v3/service_instances?type=managed&service_plan_names=small&organization_guids=org-1", status: 200, want: `{"pagination": {"total_results": 2}}`},
		{method: "GET", path: "/v3/service_credential_bindings?service_offering_names=db", status: 200, want: `{"resources": []}`},
	})
}

func TestQuotaOfServices(t *testing.T) {
	w := newWorld(t)
	w.write(seedServices)
	w.write(func(tx *store.Tx) error {
		org, err := store.Orgs.Get(tx, "org-1")
		if err != nil {
			return err
		}
		q, err := store.OrgQuotas.Get(tx, org.QuotaGUID)
		if err != nil {
			return err
		}
		two, none := 2, 0
		q.Limits.TotalServiceInstances, q.Limits.TotalServiceKeys, q.Limits.PaidServices = &two, &none, false
		paid := &cf.ServicePlan{Resource: guid("plan-paid"), OfferingGUID: "offering-s", CatalogID: "paid", Name: "paid", Active: true, Public: true}
		return control.OrElse(store.OrgQuotas.Update(tx, q), store.ServicePlans.Insert(tx, paid))
	})
	w.run(t, []step{
		{method: "POST", path: "/v3/service_instances", body: `{"type": "managed", "name": "x", ` + toSpacePlan("plan-s"), status: 422, want: detail(10008, "You have exceeded your organization's services limit.")},
		{method: "POST", path: "/v3/service_instances", body: `{"type": "managed", "name": "x", ` + toSpacePlan("plan-paid"), status: 422,
			want: detail(10008, "The service instance cannot be created because paid service plans are not allowed.")},
		{method: "POST", path: "/v3/service_credential_bindings", body: `{"type": "key", "name": "k", "relationships": {"service_instance": {"data": {"guid": "db-1"}}}}`, status: 422,
			want: detail(10008, "You have exceeded your organization's limit for service binding of type key.")},
		{method: "GET", path: "/v3/organizations/org-1/usage_summary", status: 200, want: `{"usage_summary": {"service_instances": 2, "service_keys": 0}}`},
	})
}
