package api

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"cupola/store"
	"cupola/store/cf"
)

// seedBroker makes a broker of space-1 with an offering and a plan.
func seedBroker(tx *store.Tx) error {
	b := &cf.ServiceBroker{Resource: guid("broker-1"), Name: "mine", URL: "http://b", Username: "u", Password: "p", SpaceGUID: "space-1", State: cf.BrokerAvailable}
	if err := store.ServiceBrokers.Insert(tx, b); err != nil {
		return err
	}
	if err := store.ServiceOfferings.Insert(tx, &cf.ServiceOffering{Resource: guid("offering-1"), BrokerGUID: "broker-1", CatalogID: "o1", Name: "mine-db", Active: true, Bindable: true}); err != nil {
		return err
	}
	return store.ServicePlans.Insert(tx, &cf.ServicePlan{Resource: guid("plan-1"), OfferingGUID: "offering-1", CatalogID: "p1", Name: "small", Active: true, Free: true})
}

// seedMarket makes a broker of the platform with plans of all visibilities but
// that of a space: plan-p is public, plan-a the admins', plan-o org-1's.
func seedMarket(tx *store.Tx) error {
	b := &cf.ServiceBroker{Resource: guid("broker-2"), Name: "all", URL: "http://b", Username: "u", Password: "p", State: cf.BrokerAvailable}
	if err := store.ServiceBrokers.Insert(tx, b); err != nil {
		return err
	}
	o := &cf.ServiceOffering{Resource: guid("offering-2"), BrokerGUID: "broker-2", CatalogID: "o2", Name: "db", Active: true, Bindable: true, Tags: []string{"sql"},
		BrokerMetadata: json.RawMessage(`{"shareable":true,"documentationUrl":"http://docs"}`)}
	if err := store.ServiceOfferings.Insert(tx, o); err != nil {
		return err
	}
	for _, p := range []*cf.ServicePlan{
		{Resource: guid("plan-p"), CatalogID: "pp", Name: "free", Active: true, Free: true, Public: true},
		{Resource: guid("plan-a"), CatalogID: "pa", Name: "secret", Active: true, BrokerMetadata: json.RawMessage(`{"costs":[{"amount":{"usd":9.5,"eur":8},"unit":"MONTHLY"}]}`)},
		{Resource: guid("plan-o"), CatalogID: "po", Name: "ours", Active: false},
	} {
		p.OfferingGUID = "offering-2"
		if err := store.ServicePlans.Insert(tx, p); err != nil {
			return err
		}
	}
	return store.ServicePlanVisibilities.Insert(tx, &cf.ServicePlanVisibility{PlanGUID: "plan-o", OrgGUID: "org-1"})
}

// TestWhoSeesPlans asks for plans and offerings as different users, with the
// filters that look at visibility.
func TestWhoSeesPlans(t *testing.T) {
	w := newWorld(t)
	w.write(seedBroker)
	w.write(seedMarket)
	for _, c := range []struct{ user, path, want string }{
		{"admin", "/v3/service_plans", "plan-1 plan-p plan-a plan-o"},
		{"global_auditor", "/v3/service_plans", "plan-1 plan-p plan-a plan-o"},
		{"space_developer", "/v3/service_plans", "plan-1 plan-p plan-o"},
		{"org_manager", "/v3/service_plans", "plan-p plan-o"},
		{"nobody", "/v3/service_plans", "plan-p"},
		{"space_developer", "/v3/service_plans?available=true", "plan-1 plan-p"},
		{"space_developer", "/v3/service_plans?available=false", "plan-o"},
		{"admin", "/v3/service_plans?space_guids=space-1", "plan-1 plan-p plan-o"},
		{"admin", "/v3/service_plans?space_guids=space-2", "plan-p"},
		{"admin", "/v3/service_plans?organization_guids=org-1", "plan-1 plan-p plan-o"},
		{"admin", "/v3/service_plans?organization_guids=org-2", "plan-p"},
		{"admin", "/v3/service_plans?service_broker_names=all&names=free,secret&service_offering_names=db", "plan-p plan-a"},
		{"admin", "/v3/service_plans?broker_catalog_ids=po", "plan-o"},
		{"admin", "/v3/service_offerings", "offering-1 offering-2"},
		{"nobody", "/v3/service_offerings", "offering-2"},
		{"org_manager", "/v3/service_offerings", "offering-2"},
		{"admin", "/v3/service_offerings?space_guids=space-2", "offering-2"},
		{"admin", "/v3/service_offerings?names=mine-db", "offering-1"},
		{"admin", "/v3/service_brokers", "broker-1 broker-2"},
		{"space_developer", "/v3/service_brokers", "broker-1"},
		{"space_manager", "/v3/service_brokers", ""},
		{"org_manager", "/v3/service_brokers?names=mine", ""},
	} {
		got := w.ask(c.user, "GET", c.path, "", "")
		if g := guidsIn(t, got); g != c.want {
			t.Errorf("%s: %s: got %d %q; want %q", c.user, c.path, got.status, g, c.want)
		}
	}
}

// TestMarketplaceOfGuests asks without a token.
func TestMarketplaceOfGuests(t *testing.T) {
	w := newWorld(t)
	w.write(seedBroker)
	w.write(seedMarket)
	get := func(path string) answer {
		res, err := http.Get(w.url + path)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		a := answer{status: res.StatusCode}
		if err := json.NewDecoder(res.Body).Decode(&a.json); err != nil {
			t.Fatal(err)
		}
		return a
	}
	if got := guidsIn(t, get("/v3/service_plans")); got != "plan-p" {
		t.Errorf("got %q", got)
	}
	for path, want := range map[string]int{"/v3/service_offerings/offering-2": 200, "/v3/service_plans/plan-a": 404, "/v3/service_brokers": 401} {
		if got := get(path); got.status != want {
			t.Errorf("%s: got %d; want %d", path, got.status, want)
		}
	}
	w.ask("admin", "PATCH", "/v3/feature_flags/hide_marketplace_from_unauthenticated_users", `{"enabled": true}`, "")
	if got := get("/v3/service_plans"); got.status != 401 {
		t.Errorf("hidden: got %d", got.status)
	}
}

func guidsIn(t *testing.T, a answer) string {
	t.Helper()
	var list []string
	top, ok := a.json.(map[string]any)
	if !ok {
		t.Fatalf("no list: %d %s", a.status, a.text)
	}
	resources, _ := top["resources"].([]any)
	for _, r := range resources {
		list = append(list, r.(map[string]any)["guid"].(string))
	}
	return strings.Join(list, " ")
}

// A change of a broker's name ends when its catalog was read: what becomes of
// its labels meanwhile stays.
func TestRenamedBrokerKeepsLabels(t *testing.T) {
	w := newWorld(t)
	w.write(seedBroker)
	w.run(t, []step{
		{method: "PATCH", path: "/v3/service_brokers/broker-1", body: `{"name": "x"}`, status: 202},
		{method: "PATCH", path: "/v3/service_brokers/broker-1", body: `{"metadata": {"labels": {"a": "b"}}}`, status: 200},
	})
	w.write(func(tx *store.Tx) error {
		j, err := store.Jobs.First(tx, store.Query{Where: map[string][]string{"operations": {cf.JobUpdateBroker}}})
		if err != nil {
			return err
		}
		var got cf.BrokerUpdate
		if err := json.Unmarshal([]byte(j.Input), &got); err != nil || got.Metadata != nil {
			t.Errorf("got %s, %v; want no metadata", j.Input, err)
		}
		return nil
	})
}

// TestBrokerWords asks for what cannot be, and wants Cloud Controller's words.
func TestBrokerWords(t *testing.T) {
	const login = `"authentication": {"type": "basic", "credentials": {"username": "u", "password": "p"}}`
	w := newWorld(t)
	w.write(seedBroker)
	w.write(seedMarket)
	w.write(func(tx *store.Tx) error {
		return store.ServiceInstances.Insert(tx, &cf.ServiceInstance{Resource: guid("si-1"), Name: "i", Type: cf.Managed, SpaceGUID: "space-1", PlanGUID: "plan-p"})
	})
	for _, c := range []struct {
		request, body string
		status        int
		detail        string
	}{
		{"POST /v3/service_brokers", `{"name": "", "url": "http://b", ` + login + `}`, 422, "Name must not be empty string"},
		{"POST /v3/service_brokers", `{"name": "n", "url": "ftp://b", ` + login + `}`, 422, "Url 'ftp://b' must be a valid url"},
		{"POST /v3/service_brokers", `{"name": "n", "url": "http://a:b@c", ` + login + `}`, 422, "Url must not contain authentication"},
		{"POST /v3/service_brokers", `{"name": "n", "url": "http://b"}`, 422, "Authentication must be an object"},
		{"POST /v3/service_brokers", `{"name": "n", "url": "http://b", "authentication": {"type": "x", "credentials": {"username": "u", "password": "p"}}}`, 422, `Authentication authentication.type must be one of [\"basic\"]`},
		{"POST /v3/service_brokers", `{"name": "n", "url": "http://b", "authentication": {"type": "basic", "credentials": {"username": "", "password": "p"}}}`, 422, `Authentication Field(s) [\"username\"] must be valid: [\"Username can't be blank\"]`},
		{"POST /v3/service_brokers", `{"name": "all", "url": "http://b", ` + login + `}`, 422, "Name must be unique"},
		{"POST /v3/service_brokers", `{"name": "n", "url": "http://b", ` + login + `, "relationships": {"space": {"data": {"guid": "no"}}}}`, 422, "Invalid space. Ensure that the space exists and you have access to it."},
		{"PATCH /v3/service_brokers/broker-1", `{"name": "all"}`, 422, "Name must be unique"},
		{"DELETE /v3/service_brokers/broker-2", "", 422, "Can not remove brokers that have associated service instances: all"},
		{"GET /v3/service_brokers/no", "", 404, "Service broker not found"},
		{"GET /v3/service_plans?available=maybe", "", 400, "Available must be 'true' or 'false'"},
		{"GET /v3/service_plans?fields[x]=y", "", 400, "Fields [x] valid resources are: 'service_offering.service_broker'"},
		{"GET /v3/service_plans?include=x", "", 400, "Invalid included resource: 'x'. Valid included resources are: 'space.organization', 'service_offering'"},
		{"DELETE /v3/service_offerings/offering-2", "", 422, "Please delete the service_plans associations for your services."},
		{"DELETE /v3/service_plans/plan-p", "", 422, "Please delete the service_instances associations for your service_plans."},
		{"POST /v3/service_plans/plan-p/visibility", `{"type": "space"}`, 400, "Type must be one of 'public', 'admin', 'organization'"},
		{"POST /v3/service_plans/plan-p/visibility", `{"type": "organization"}`, 400, "Organizations can't be blank"},
		{"POST /v3/service_plans/plan-p/visibility", `{"type": "organization", "organizations": [{"guid": "no"}]}`, 422, "Could not find VCAP::CloudController::Organization with guid: no"},
		{"POST /v3/service_plans/plan-1/visibility", `{"type": "public"}`, 422, "cannot update plans with visibility type 'space'"},
		{"DELETE /v3/service_plans/plan-p/visibility/org-1", "", 422, "Cannot delete visibilities from non-org-restricted plans"},
		{"DELETE /v3/service_plans/plan-o/visibility/org-2", "", 404, "Service plan visibility not found"},
	} {
		method, path, _ := strings.Cut(c.request, " ")
		got := w.ask("admin", method, path, c.body, "")
		if got.status != c.status || !strings.Contains(got.text, c.detail) {
			t.Errorf("%s %s: got %d %s; want %d %s", c.request, c.body, got.status, got.text, c.status, c.detail)
		}
	}
}

// TestVisibilityOfPlans walks a plan through its visibilities.
func TestVisibilityOfPlans(t *testing.T) {
	w := newWorld(t)
	w.write(seedMarket)
	for _, c := range []struct{ method, path, body, want string }{
		{"GET", "", "", `{"type":"public"}`},
		{"PATCH", "", `{"type": "organization", "organizations": [{"guid": "org-1"}]}`, `{"organizations":[{"guid":"org-1","name":"org"}],"type":"organization"}`},
		{"POST", "", `{"type": "organization", "organizations": [{"guid": "org-2"}, {"guid": "org-1"}]}`, `{"type":"organization"}`},
		{"GET", "", "", `{"organizations":[{"guid":"org-1","name":"org"},{"guid":"org-2","name":"other"}],"type":"organization"}`},
		{"DELETE", "/org-1", "", ""},
		{"PATCH", "", `{"type": "organization", "organizations": [{"guid": "org-2"}]}`, `{"organizations":[{"guid":"org-2","name":"other"}],"type":"organization"}`},
		{"POST", "", `{"type": "admin"}`, `{"type":"admin"}`},
		{"POST", "", `{"type": "public"}`, `{"type":"public"}`},
	} {
		got := w.ask("admin", c.method, "/v3/service_plans/plan-p/visibility"+c.path, c.body, "")
		if got.text != c.want || got.status >= 300 {
			t.Errorf("%s%s %s: got %d %s; want %s", c.method, c.path, c.body, got.status, got.text, c.want)
		}
	}
}
