package api

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"cupola/store"
)

// TestWhenChanged: what operators set has the time of its last change, and null before it
// (CC: FeatureFlagPresenter, EnvironmentVariableGroupPresenter).
func TestWhenChanged(t *testing.T) {
	w := newWorld(t)
	for path, body := range map[string]string{"/v3/feature_flags/diego_docker": `{"enabled": true}`, "/v3/environment_variable_groups/running": `{"var": {"A": "B"}}`} {
		w.run(t, []step{
			{method: "GET", path: path, status: 200, want: `{"updated_at": null}`},
			{method: "PATCH", path: path, body: body, status: 200},
		})
		at, _ := w.ask("admin", "GET", path, "", "").json.(map[string]any)["updated_at"].(string)
		if !strings.HasSuffix(at, "Z") {
			t.Errorf("%s: got updated_at %q after a change", path, at)
		}
	}
}

// TestPlanWithoutSchemas: a plan whose broker gave no schemas has empty ones (CC:
// ServicePlanPresenter.parse_schema).
func TestPlanWithoutSchemas(t *testing.T) {
	w := newWorld(t)
	w.write(func(tx *store.Tx) error {
		if err := seedBroker(tx); err != nil {
			return err
		}
		p, err := store.ServicePlans.First(tx, store.Query{})
		if err != nil {
			return err
		}
		p.Schemas.CreateInstance = json.RawMessage("null")
		return store.ServicePlans.Update(tx, p)
	})
	w.run(t, []step{{method: "GET", path: "/v3/service_plans", status: 200,
		want: `{"resources": [{"schemas": {"service_instance": {"create": {"parameters": {}}, "update": {"parameters": {}}}, "service_binding": {"create": {"parameters": {}}}}}]}`}})
	for _, row := range w.ask("admin", "GET", "/v3/service_plans", "", "").json.(map[string]any)["resources"].([]any) {
		if text, _ := json.Marshal(row.(map[string]any)["schemas"]); strings.Contains(string(text), "null") {
			t.Errorf("got %s", text)
		}
	}
}

// TestSecondPoolWarns: a space has one pool, so another one says which it replaces.
func TestSecondPoolWarns(t *testing.T) {
	w := newWorld(t)
	w.run(t, []step{
		{method: "POST", path: "/v3/placement_pools", body: `{"name": "one", "relationships": {"spaces": {"data": [{"guid": "space-1"}]}}}`, status: 201, save: "one"},
		{method: "POST", path: "/v3/placement_pools", body: `{"name": "two"}`, status: 201, save: "two"},
	})
	for pool, want := range map[string]string{"two": "Placement pool 'two' replaces 'one' of space 'dev': a space has one pool."} {
		got := w.ask("admin", "POST", w.fill("/v3/placement_pools/{"+pool+"}/relationships/spaces"), `{"data": [{"guid": "space-1"}, {"guid": "space-2"}]}`, "")
		if text, err := url.QueryUnescape(got.header.Get("X-Cf-Warnings")); err != nil || got.status != 200 || text != want {
			t.Errorf("got %d %q, %v; want %q", got.status, text, err, want)
		}
		again := w.ask("admin", "POST", w.fill("/v3/placement_pools/{"+pool+"}/relationships/spaces"), `{"data": [{"guid": "space-1"}]}`, "")
		if text := again.header.Get("X-Cf-Warnings"); text != "" {
			t.Errorf("the same pool again: got %q", text)
		}
	}
}
