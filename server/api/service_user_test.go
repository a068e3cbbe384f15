package api

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"cupola/store"
	"cupola/store/cf"
)

const newUPS = `{"type": "user-provided", "name": "%s", %s ` + toSpace + `}`

func TestUserProvidedServices(t *testing.T) {
	w := newWorld(t)
	bound := `{"type": "app", "relationships": {"app": {"data": {"guid": "app-1"}}, "service_instance": {"data": {"guid": "{ups}"}}}`
	w.run(t, []step{
		{method: "POST", path: "/v3/service_instances", body: fmt.Sprintf(newUPS, "ups", `"credentials": {"z": "very secret", "a": 1.0}, "tags": ["t"], "syslog_drain_url": "syslog://u:very@h", `), status: 201, save: "ups",
			want: `{"name": "ups", "type": "user-provided", "tags": ["t"], "syslog_drain_url": "syslog://u:very@h", "route_service_url": null,
			"last_operation": {"type": "create", "state": "succeeded", "description": "Operation succeeded"}, "relationships": {"space": {"data": {"guid": "space-1"}}},
			"links": {"credentials": {"href": "{url}/v3/service_instances/{ups}/credentials"}}}`},
		{method: "POST", path: "/v3/service_instances", body: fmt.Sprintf(newUPS, "UPS", ""), status: 422, want: detail(10008, "The service instance name is taken: UPS.")},
		{method: "GET", path: "/v3/service_instances/{ups}/credentials", status: 200, want: `{"z": "very secret", "a": 1.0}`},
		{method: "POST", path: "/v3/service_credential_bindings", body: bound + `, "name": "b-1"}`, status: 201, save: "binding",
			want: `{"name": "b-1", "type": "app", "last_operation": {"type": "create", "state": "succeeded", "description": null},
			"relationships": {"app": {"data": {"guid": "app-1"}}, "service_instance": {"data": {"guid": "{ups}"}}}}`},
		{method: "POST", path: "/v3/service_credential_bindings", body: bound + `}`, status: 422, want: detail(10008, "The binding name cannot be changed for the same app and service instance")},
		{method: "POST", path: "/v3/service_credential_bindings", body: bound + `, "name": "b-1"}`, status: 422, want: detail(10008, "The app is already bound to the service instance")},
		{method: "POST", path: "/v3/service_credential_bindings", body: bound + `, "parameters": {}}`, status: 422, want: detail(10008, "Binding parameters are not supported for user-provided service instances")},
		{method: "GET", path: "/v3/service_credential_bindings/{binding}/details", status: 200, want: `{"credentials": {"z": "very secret"}, "syslog_drain_url": "syslog://u:very@h"}`},
		{method: "GET", path: "/v3/service_credential_bindings/{binding}/parameters", status: 400, want: detail(90007, "This service does not support fetching service binding parameters.")},
		{method: "GET", path: "/v3/service_instances/{ups}/parameters", status: 400, want: detail(120004, "This service does not support fetching service instance parameters.")},
		{method: "GET", path: "/v3/apps/app-1/env", status: 200, want: `{"system_env_json": {"VCAP_SERVICES": {"user-provided": [{"label": "user-provided", "name": "b-1", "credentials": {"z": "very secret"}}]}}}`},
		{method: "PATCH", path: "/v3/service_instances/{ups}", body: `{"credentials": {"k": "other secret"}, "name": "renamed", "tags": null}`, status: 200,
			want: `{"name": "renamed", "tags": [], "last_operation": {"type": "update", "state": "succeeded"}}`},
		{method: "GET", path: "/v3/service_credential_bindings/{binding}/details", status: 200, want: `{"credentials": {"k": "other secret"}}`},
		{method: "GET", path: "/v3/service_credential_bindings?include=app,service_instance&app_names=hello&service_instance_names=renamed", status: 200,
			want: `{"resources": [{"guid": "{binding}"}], "included": {"apps": [{"guid": "app-1"}], "service_instances": [{"guid": "{ups}"}]}}`},
		{method: "GET", path: "/v3/service_credential_bindings?type=key", status: 200, want: `{"resources": []}`},
		{method: "GET", path: "/v3/service_credential_bindings?type=x", status: 400, want: detail(10005, "The query parameter is invalid: Type must be one of 'app', 'key'")},
		{method: "DELETE", path: "/v3/service_credential_bindings/{binding}", status: 204},
		{method: "GET", path: "/v3/service_credential_bindings/{binding}", status: 404},
		{method: "POST", path: "/v3/service_credential_bindings", body: bound + `}`, status: 201, save: "again"},
		{method: "DELETE", path: "/v3/service_instances/{ups}", status: 204},
		{method: "GET", path: "/v3/service_credential_bindings/{again}", status: 404},
	})
	w.hasEvents(t, "audit.user_provided_service_instance.create audit.user_provided_service_instance.show audit.service_binding.create audit.service_binding.show "+
		"audit.app.environment.show audit.user_provided_service_instance.update audit.service_binding.show audit.service_binding.delete audit.service_binding.create audit.service_binding.delete audit.user_provided_service_instance.delete")
}

// hasEvents wants audit events of these types in this order, and no secret in
// any.
func (w *world) hasEvents(t *testing.T, want string) {
	t.Helper()
	var got []string
	err := w.store.Read(context.Background(), func(tx *store.Tx) error {
		events, err := store.Events.All(tx)
		for _, e := range events {
			got = append(got, e.Type)
			text, _ := json.Marshal(e)
			if strings.Contains(string(text), "secret") || strings.Contains(string(text), "very") {
				t.Errorf("%s tells a secret: %s", e.Type, text)
			}
			if e.SpaceGUID != "space-1" || e.OrgGUID != "org-1" {
				t.Errorf("%s is of %q, %q", e.Type, e.SpaceGUID, e.OrgGUID)
			}
		}
		return err
	})
	if err != nil || strings.Join(got, " ") != want {
		t.Errorf("got %v, %v; want %s", got, err, want)
	}
}

func TestServicesThatCannotBe(t *testing.T) {
	w := newWorld(t)
	w.write(seedServices)
	for body, want := range map[string]string{
		`{}`: "Relationships 'relationships' is not an object, Type must be one of 'managed', 'user-provided', Name must be a string, Name can't be blank",
		fmt.Sprintf(newUPS, "x", `"credentials": "text",`):                                                    "Credentials must be an object",
		fmt.Sprintf(newUPS, "x", `"tags": "t",`):                                                              "Tags must be an array",
		fmt.Sprintf(newUPS, "x", `"tags": [1],`):                                                              "Tags must be a list of strings",
		fmt.Sprintf(newUPS, "x", `"tags": ["`+strings.Repeat("t", 2049)+`"],`):                                "tags too_long",
		fmt.Sprintf(newUPS, "x", `"syslog_drain_url": "no uri",`):                                             "Syslog drain url must be a valid URI",
		fmt.Sprintf(newUPS, "x", `"route_service_url": "http://h",`):                                          "Route service url must be https",
		fmt.Sprintf(newUPS, "x", `"route_service_url": "https://.h",`):                                        "service_instance route_service_url_invalid",
		fmt.Sprintf(newUPS, "x", `"parameters": {},`):                                                         "Unknown field(s): 'parameters'",
		fmt.Sprintf(newUPS, "x", `"what": 1,`):                                                                "Unknown field(s): 'what'",
		fmt.Sprintf(newUPS, strings.Repeat("n", 256), ""):                                                     "name max_length",
		fmt.Sprintf(newUPS, "ups", ""):                                                                        "The service instance name is taken: ups.",
		`{"type": "user-provided", "name": "x", "relationships": {"space": {"data": {"guid": "none"}}}}`:      "Invalid space. Ensure that the space exists and you have access to it.",
		`{"type": "managed", "name": "x", "credentials": {}, ` + toSpacePlan("plan-s"):                        "Unknown field(s): 'credentials'",
		`{"type": "managed", "name": "x", ` + toSpacePlan("none"):                                             "Invalid service plan. Ensure that the service plan exists, is available, and you have access to it.",
		`{"type": "managed", "name": "db1", ` + toSpacePlan("plan-s"):                                         "The service instance name is taken: db1.",
		`{"type": "managed", "name": "x", "parameters": [], ` + toSpacePlan("plan-s"):                         "Parameters must be an object",
		`{"type": "user-provided", "name": "db2", "relationships": {"space": {"data": {"guid": "space-3"}}}}`: "The service instance name is taken: db2.",
		`{"type": "managed", "name": "x", "relationships": {"space": {"data": {"guid": "space-1"}}, "service_plan": {"data": {"guid": "plan-gone"}}}}`: "Invalid service plan. The service plan 'old' with guid 'plan-gone' has been removed from the service broker's catalog. It is not possible to create new service instances using this plan.",
	} {
		if strings.Contains(body, "plan-gone") {
			w.write(func(tx *store.Tx) error {
				return store.ServicePlans.Insert(tx, &cf.ServicePlan{Resource: guid("plan-gone"), OfferingGUID: "offering-s", CatalogID: "g", Name: "old", Public: true})
			})
		}
		got := w.ask("admin", "POST", "/v3/service_instances", body, "")
		if why := lacksDetail(got, want); got.status != 422 || why != "" {
			t.Errorf("%.120s: got %d %s; want %s", body, got.status, got.text, want)
		}
	}
}

func toSpacePlan(plan string) string {
	return `"relationships": {"space": {"data": {"guid": "space-1"}}, "service_plan": {"data": {"guid": "` + plan + `"}}}}`
}

func lacksDetail(a answer, want string) string {
	var v any
	if err := json.Unmarshal([]byte(detail(10008, want)), &v); err != nil {
		return err.Error()
	}
	return lacks(v, a.json, "")
}

// TestVariableThatIsTooLarge binds what no program could be started with.
func TestVariableThatIsTooLarge(t *testing.T) {
	w := newWorld(t)
	secret := func(n int) string { return `"credentials": {"k": "` + strings.Repeat("x", n) + `"}, ` }
	bind := func(name string) string {
		return `{"type": "app", "relationships": {"app": {"data": {"guid": "app-1"}}, "service_instance": {"data": {"guid": "{` + name + `}"}}}}`
	}
	const advice = "file-based-vcap-services"
	w.run(t, []step{
		{method: "POST", path: "/v3/service_instances", body: fmt.Sprintf(newUPS, "half", secret(70<<10)), status: 201, save: "half"},
		{method: "POST", path: "/v3/service_instances", body: fmt.Sprintf(newUPS, "other", secret(70<<10)), status: 201, save: "other"},
		{method: "POST", path: "/v3/service_credential_bindings", body: bind("half"), status: 201},
	})
	for _, s := range []struct{ method, path, body string }{
		{"POST", "/v3/service_credential_bindings", bind("other")},
		{"PATCH", "/v3/service_instances/{half}", "{" + strings.TrimSuffix(secret(128<<10), ", ") + "}"},
	} {
		got := w.ask("admin", s.method, w.fill(s.path), w.fill(s.body), "")
		if got.status != 422 || !strings.Contains(got.text, advice) {
			t.Errorf("%s %s: got %d %.200s; want advice", s.method, s.path, got.status, got.text)
		}
	}
	w.run(t, []step{
		{method: "GET", path: "/v3/service_credential_bindings", status: 200, want: `{"pagination": {"total_results": 1}}`},
		{method: "PATCH", path: "/v3/apps/app-1/features/" + advice, body: `{"enabled": true}`, status: 200},
		{method: "POST", path: "/v3/service_credential_bindings", body: bind("other"), status: 201},
		{method: "GET", path: "/v3/apps/app-1/env", status: 200, want: `{"system_env_json": {"VCAP_SERVICES_FILE_PATH": "/etc/cf-service-bindings/vcap_services"}}`},
		{method: "PATCH", path: "/v3/apps/app-1/features/" + advice, body: `{"enabled": false}`, status: 422},
		{method: "POST", path: "/v3/apps/app-1/actions/start", status: 200},
	})
}
