package scalingbroker

import (
	"encoding/json"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"

	"cupola/server/control"
	"cupola/server/control/autoscaling"
	"cupola/server/osb"
	"cupola/server/osb/builtin"
	"cupola/store"
	"cupola/store/cf"
)

type world struct {
	t *testing.T
	broker
}

// newWorld has the apps "one" and "two".
func newWorld(t *testing.T) *world {
	t.Helper()
	s, err := store.Open(store.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	err = s.Write(t.Context(), func(tx *store.Tx) error {
		if err := store.Orgs.Insert(tx, &cf.Org{Resource: cf.Resource{GUID: "org"}, Name: "org"}); err != nil {
			return err
		}
		if err := store.Spaces.Insert(tx, &cf.Space{Resource: cf.Resource{GUID: "space"}, Name: "space", OrgGUID: "org"}); err != nil {
			return err
		}
		for _, app := range []string{"one", "two"} {
			if err := store.Apps.Insert(tx, &cf.App{Resource: cf.Resource{GUID: app}, Name: app, SpaceGUID: "space", State: cf.Stopped}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return &world{t, broker{Config{Store: s, URL: "https://autoscaler.test:1", Log: slog.New(slog.NewTextHandler(t.Output(), nil))}}}
}

// TestTheCatalogIsRight makes the platform's own client read it.
func TestTheCatalogIsRight(t *testing.T) {
	w := newWorld(t)
	srv := httptest.NewServer(builtin.Guard("me", "secret", w.handler()))
	defer srv.Close()
	catalog, err := osb.New(osb.Config{}).Catalog(t.Context(), osb.Broker{URL: srv.URL, Username: "me", Password: "secret"}, "")
	if err != nil {
		t.Fatal(err)
	}
	if faults := catalog.Faults(osb.Known{}); faults != "" || len(catalog.Services) != 1 {
		t.Errorf("got %d services, %s", len(catalog.Services), faults)
	}
}

// ask sends a request, with the IDs of the catalog.
func (w *world) ask(method, path, rest string, want int) object {
	w.t.Helper()
	r := httptest.NewRequestWithContext(w.t.Context(), method, path, strings.NewReader(`{"service_id": "cupola-autoscaler", "plan_id": "cupola-autoscaler-free"`+rest+`}`))
	rec := httptest.NewRecorder()
	w.handler().ServeHTTP(rec, r)
	var o object
	if err := json.Unmarshal(rec.Body.Bytes(), &o); err != nil || rec.Code != want {
		w.t.Errorf("%s %s %s: got %d %s; want %d", method, path, rest, rec.Code, rec.Body, want)
	}
	return o
}

// has checks what policy an app has: how many instances at most, 0 for none.
func (w *world) has(app string, highest int) {
	w.t.Helper()
	err := w.Store.Read(w.t.Context(), func(tx *store.Tx) error {
		var p autoscaling.Policy
		text, err := autoscaling.Of(tx, app)
		if err := control.IfFound(err); err != nil {
			return err
		}
		if text != nil {
			err = json.Unmarshal(text, &p)
		}
		if p.Max != highest {
			w.t.Errorf("%s: got the policy %s; want one of %d instances", app, text, highest)
		}
		return control.IfFound(err)
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

func policy(highest string) string {
	return `{"instance_min_count": 1, "instance_max_count": ` + highest + `, "scaling_rules": [{"metric_type": "jobs", "threshold": 1, "operator": ">", "adjustment": "+1"}]}`
}

// TestPoliciesOfBindings binds apps with a policy and with the default one, which changes then.
func TestPoliciesOfBindings(t *testing.T) {
	w := newWorld(t)
	const at = "/v2/service_instances/i"
	one, two := at+"/service_bindings/b1", at+"/service_bindings/b2"
	ofOne, ofTwo := `, "bind_resource": {"app_guid": "one"}`, `, "bind_resource": {"app_guid": "two"}`
	w.ask("PUT", at, `, "parameters": {"default_policy": `+policy("4")+`}`, 201)
	w.ask("PUT", at, `, "parameters": {"default_policy": `+policy("4")+`}`, 200)
	w.ask("PUT", at, "", 409)
	w.ask("PUT", one, ofOne+`, "parameters": `+policy("7"), 201)
	w.ask("PUT", one, ofOne+`, "parameters": `+policy("7"), 200)
	w.ask("PUT", one, ofTwo, 409)
	w.ask("PUT", two, ofTwo, 201)
	w.has("one", 7)
	w.has("two", 4)
	w.ask("PATCH", at, `, "parameters": {"default_policy": `+policy("5")+`}`, 200)
	w.has("one", 7)
	w.has("two", 5)
	w.ask("PATCH", at, "", 200)
	w.has("two", 5)
	if got := w.ask("GET", at, "", 200)["parameters"].(object)["default_policy"].(object); got["instance_max_count"] != 5.0 {
		t.Errorf("got the default policy %v", got)
	}
	w.ask("PATCH", at, `, "parameters": {"default_policy": {}}`, 200)
	w.has("two", 0)
	w.ask("PATCH", at, `, "parameters": {"default_policy": `+policy("6")+`}`, 200)
	w.has("two", 6)
	if got := w.ask("GET", one, "", 200)["parameters"].(object); got["instance_max_count"] != 7.0 {
		t.Errorf("got the binding's policy %v", got)
	}
	w.ask("DELETE", one, "", 200)
	w.has("one", 0)
	w.ask("DELETE", one, "", 410)
	w.ask("GET", one, "", 404)
	w.ask("DELETE", two, "", 200)
	w.ask("DELETE", at, "", 200)
	w.ask("DELETE", at, "", 410)
	w.ask("GET", at, "", 404)
}

// TestCredentials are those of App Autoscaler, of either type.
func TestCredentials(t *testing.T) {
	w := newWorld(t)
	const at, url = "/v2/service_instances/i", "https://autoscaler.test:1"
	w.ask("PUT", at, "", 201)
	custom := func(o object) object { return o["credentials"].(object)["custom_metrics"].(object) }
	secret := custom(w.ask("PUT", at+"/service_bindings/b1", `, "app_guid": "one"`, 201))
	if p, _ := secret["password"].(string); len(p) < 20 || secret["username"] != "b1" || secret["url"] != url || secret["mtls_url"] != url {
		t.Errorf("got %v", secret)
	}
	if again := custom(w.ask("GET", at+"/service_bindings/b1", "", 200)); again["password"] != secret["password"] {
		t.Errorf("got %v once more; want %v", again, secret)
	}
	rotated := custom(w.ask("PUT", at+"/service_bindings/b3", `, "app_guid": "one"`, 201))
	if rotated["password"] == secret["password"] {
		t.Error("a new binding has the password of the old one")
	}
	w.ask("GET", at+"/service_bindings/b1", "", 404)
	x509 := custom(w.ask("PUT", at+"/service_bindings/b2", `, "app_guid": "two", "parameters": {"credential-type": "x509"}`, 201))
	if len(x509) != 1 || x509["mtls_url"] != url {
		t.Errorf("got %v", x509)
	}
}

// TestAPurgedInstanceBindsNoApp purges an instance, of which the broker hears nothing: its password is void, and its app can be bound to
// another one.
func TestAPurgedInstanceBindsNoApp(t *testing.T) {
	w := newWorld(t)
	w.ask("PUT", "/v2/service_instances/purged", "", 201)
	w.ask("PUT", "/v2/service_instances/i", "", 201)
	w.insert("purged")
	const bound = `, "app_guid": "one"`
	custom := w.ask("PUT", "/v2/service_instances/purged/service_bindings/b1", bound, 201)["credentials"].(object)["custom_metrics"].(object)
	by := autoscaling.Submitter{Username: "b1", Password: custom["password"].(string)}
	submits := func(may bool) {
		t.Helper()
		err := w.Store.Read(t.Context(), func(tx *store.Tx) error { return autoscaling.CheckSubmitter(tx, "one", by) })
		if (err == nil) != may {
			t.Errorf("got %v; want metrics taken: %t", err, may)
		}
	}
	submits(true)
	w.ask("PUT", "/v2/service_instances/i/service_bindings/b2", bound, 409)
	if err := w.Store.Write(t.Context(), func(tx *store.Tx) error { return store.ServiceInstances.Delete(tx, "purged") }); err != nil {
		t.Fatal(err)
	}
	submits(false)
	w.ask("PUT", "/v2/service_instances/i/service_bindings/b2", bound, 201)
	w.ask("GET", "/v2/service_instances/purged", "", 404)
}

// insert adds the platform's row of an instance.
func (w *world) insert(guid string) {
	w.t.Helper()
	i := &cf.ServiceInstance{Resource: cf.Resource{GUID: guid}, Name: guid, Type: cf.UserProvided, SpaceGUID: "space"}
	if err := w.Store.Write(w.t.Context(), func(tx *store.Tx) error { return store.ServiceInstances.Insert(tx, i) }); err != nil {
		w.t.Fatal(err)
	}
}

// TestKeys makes service keys, which name their app.
func TestKeys(t *testing.T) {
	w := newWorld(t)
	const at, app, other = "/v2/service_instances/i", "8d0cee08-23ad-4813-a779-ad8118ea0b91", "8d0cee08-23ad-4813-a779-ad8118ea0b92"
	w.ask("PUT", at, `, "parameters": {"default_policy": {"schema-version": "0.1", `+policy("4")[1:]+`}`, 201)
	w.insert("i")
	err := w.Store.Write(t.Context(), func(tx *store.Tx) error {
		if err := store.Spaces.Insert(tx, &cf.Space{Resource: cf.Resource{GUID: "elsewhere"}, Name: "elsewhere", OrgGUID: "org"}); err != nil {
			return err
		}
		if err := store.Apps.Insert(tx, &cf.App{Resource: cf.Resource{GUID: app}, Name: "three", SpaceGUID: "space", State: cf.Stopped}); err != nil {
			return err
		}
		return store.Apps.Insert(tx, &cf.App{Resource: cf.Resource{GUID: other}, Name: "four", SpaceGUID: "elsewhere", State: cf.Stopped})
	})
	if err != nil {
		t.Fatal(err)
	}
	named := func(guid string) string {
		return `, "parameters": {"schema-version": "0.1", "configuration": {"app_guid": "` + guid + `"}}`
	}
	key := w.ask("PUT", at+"/service_bindings/k", named(app), 201)["credentials"].(object)["custom_metrics"].(object)
	if key["username"] != "k" || key["password"] == "" {
		t.Errorf("got the credentials %v", key)
	}
	w.ask("PUT", at+"/service_bindings/k", named(app), 200)
	w.has(app, 4)
	w.ask("PUT", at+"/service_bindings/k2", `, "parameters": {"schema-version": "0.1", "configuration": {"app_guid": "`+app+`"}, `+policy("9")[1:], 201)
	w.has(app, 9)
	for _, guid := range []string{other, "8d0cee08-23ad-4813-a779-ad8118ea0b93"} {
		if got := w.ask("PUT", at+"/service_bindings/k3", named(guid), 422); got["error"] != "AppNotInSpace" || got["description"] != "app "+guid+" not found in space space" {
			t.Errorf("%s: got %v; want an app of another space refused", guid, got)
		}
	}
	if got := w.ask("PUT", at+"/service_bindings/k3", `, "app_guid": "one"`+named(app), 400); !strings.HasPrefix(got["description"].(string), "error: app GUID provided in both, binding resource and binding configuration") {
		t.Errorf("got %v", got)
	}
	w.ask("DELETE", at+"/service_bindings/k2", "", 200)
	w.has(app, 0)
}

func TestRefusals(t *testing.T) {
	w := newWorld(t)
	const at = "/v2/service_instances/i"
	w.ask("PUT", at, "", 201)
	w.ask("PUT", "/v2/service_instances/other", "", 201)
	w.ask("PUT", "/v2/service_instances/other/service_bindings/b", `, "app_guid": "two"`, 201)
	w.insert("other")
	for name, c := range map[string]struct {
		path, rest string
		status     int
		want       string
	}{
		"a key":                {at + "/service_bindings/k", "", 400, "error: service must be bound to an application; Please provide a GUID of an app!"},
		"no such instance":     {"/v2/service_instances/x/service_bindings/k", `, "app_guid": "one"`, 404, "instance does not exist"},
		"bound to another":     {at + "/service_bindings/k", `, "app_guid": "two"`, 409, "multiple bindings are not supported"},
		"a type of credential": {at + "/service_bindings/k", `, "app_guid": "one", "parameters": {"credential-type": "x"}`, 400, `credential-type must be one of the following: \\\"x509\\\", \\\"binding-secret\\\"`},
		"a policy":             {at + "/service_bindings/k", `, "app_guid": "one", "parameters": {"instance_min_count": 0}`, 400, `invalid policy provided: [{\"context\":\"(root)\",\"description\":\"instance_max_count is required\"}`},
		"a default policy":     {"/v2/service_instances/y", `, "parameters": {"default_policy": []}`, 400, "Invalid type. Expected: object, given: array"},
		"another parameter":    {"/v2/service_instances/y", `, "parameters": {"policy": {}}`, 400, "parameters has a field policy: only default_policy is known"},
		"a list of parameters": {"/v2/service_instances/y", `, "parameters": []`, 400, "not valid JSON"},
	} {
		got, err := json.Marshal(w.ask("PUT", c.path, c.rest, c.status))
		if err != nil || !strings.Contains(string(got), c.want) {
			t.Errorf("%s: got %s; want %s", name, got, c.want)
		}
	}
	w.has("one", 0)
	r := httptest.NewRequestWithContext(t.Context(), "PUT", at, strings.NewReader(`{"service_id": "x"}`))
	rec := httptest.NewRecorder()
	if w.handler().ServeHTTP(rec, r); rec.Code != 400 {
		t.Errorf("another service: got %d", rec.Code)
	}
}
