package api

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"cupola/server/control"
	"cupola/server/control/audit"
	"cupola/store"
	"cupola/store/cf"
)

// brokered does what a broker is asked for: every job that waits for one ends so,
// with a description where it failed.
func (w *world) brokered(state, description string) (works []cf.ServiceWork) {
	w.t.Helper()
	w.write(func(tx *store.Tx) error {
		jobs, err := store.Jobs.By(tx, "states", string(cf.JobProcessing))
		for _, j := range jobs {
			if !strings.HasPrefix(j.Operation, "service_") {
				continue
			}
			var work cf.ServiceWork
			if err := json.Unmarshal([]byte(j.Input), &work); err != nil {
				return err
			}
			works = append(works, work)
			if err := settleJob(tx, j, state, description); err != nil {
				return err
			}
		}
		return err
	})
	return works
}

func settleJob(tx *store.Tx, j *cf.Job, state, description string) error {
	j.State = cf.JobComplete
	if state == cf.OpFailed {
		j.State = cf.JobFailed
	}
	if err := store.Jobs.Update(tx, j); err != nil {
		return err
	}
	kind, what, _ := strings.Cut(j.Operation, ".")
	settled := func(o *cf.LastOperation) {
		o.State, o.Description, o.UpdatedAt = state, description, tx.Now
	}
	gone := what == "delete" && state == cf.OpSucceeded
	switch kind {
	case "service_instance":
		i, err := store.ServiceInstances.Get(tx, j.ResourceGUID)
		if err != nil || gone {
			return control.OrElse(err, store.ServiceInstances.Delete(tx, j.ResourceGUID))
		}
		settled(&i.LastOperation)
		return store.ServiceInstances.Update(tx, i)
	case "service_route_bindings":
		b, err := store.RouteBindings.Get(tx, j.ResourceGUID)
		if err != nil || gone {
			return control.OrElse(err, store.RouteBindings.Delete(tx, j.ResourceGUID))
		}
		settled(&b.LastOperation)
		return store.RouteBindings.Update(tx, b)
	}
	b, err := store.ServiceBindings.Get(tx, j.ResourceGUID)
	if err != nil || gone {
		return control.OrElse(err, store.ServiceBindings.Delete(tx, j.ResourceGUID))
	}
	settled(&b.LastOperation)
	b.Credentials = json.RawMessage(`{"uri":"mysql://h"}`)
	return store.ServiceBindings.Update(tx, b)
}

// waits works on the jobs that wait for brokers.
func (w *world) waits(t *testing.T) {
	t.Helper()
	s := w.worker()
	for more := true; more; {
		var err error
		if more, err = s.Jobs.Once(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
}

func bindTo(instance, more string) string {
	return `{"type": "app", ` + more + ` "relationships": {"app": {"data": {"guid": "app-1"}}, "service_instance": {"data": {"guid": "` + instance + `"}}}}`
}

func TestManagedServices(t *testing.T) {
	w := newWorld(t)
	w.write(seedServices)
	w.run(t, []step{
		{method: "POST", path: "/v3/service_instances", body: `{"type": "managed", "name": "new", "parameters": {"b": 1, "a": "secret"}, "tags": ["x"], ` + toSpacePlan("plan-s"), status: 202, save: "job"},
		{method: "GET", path: "/v3/jobs/{job}", status: 200, want: `{"operation": "service_instance.create", "state": "PROCESSING"}`},
		{method: "GET", path: "/v3/service_instances?names=new", status: 200, want: `{"resources": [{"type": "managed", "tags": ["x"], "last_operation": {"type": "create", "state": "initial"},
			"maintenance_info": {}, "upgrade_available": false, "dashboard_url": null, "relationships": {"service_plan": {"data": {"guid": "plan-s"}}}}]}`},
	})
	w.saved["new"] = w.first("/v3/service_instances?names=new")
	w.run(t, []step{
		{method: "POST", path: "/v3/service_credential_bindings", body: bindTo("{new}", ""), status: 422, want: detail(10008, "There is an operation in progress for the service instance")},
		{method: "PATCH", path: "/v3/service_instances/{new}", body: `{"parameters": {}}`, status: 409, want: detail(60016, "An operation for service instance new is in progress.")},
		{method: "PATCH", path: "/v3/service_instances/{new}", body: labels, status: 200},
		{method: "DELETE", path: "/v3/service_instances/{new}", status: 422, want: detail(10008, "There is an operation in progress for the service instance.")},
	})
	works := w.brokered(cf.OpSucceeded, "")
	if len(works) != 1 || string(works[0].Parameters) != `{"b":1,"a":"secret"}` || works[0].Actor.GUID != "user-admin" || works[0].Request["parameters"] != audit.Hidden {
		t.Errorf("got %+v; want what the broker is to be told", works)
	}
	w.run(t, []step{
		{method: "PATCH", path: "/v3/service_instances/{new}", body: `{"name": "renamed"}`, status: 200, want: `{"name": "renamed", "last_operation": {"type": "update", "state": "succeeded"}}`},
		{method: "PATCH", path: "/v3/service_instances/{new}", body: `{"name": "db1"}`, status: 422, want: detail(10008, "The service instance name is taken: db1")},
		{method: "PATCH", path: "/v3/service_instances/db-2", body: `{"name": "x"}`, status: 422, want: detail(10008, "Service instances that have been shared cannot be renamed")},
		{method: "PATCH", path: "/v3/service_instances/{new}", body: `{"maintenance_info": {"version": "1.0.0"}}`, status: 422,
			want: detail(10008, "The service broker does not support upgrades for service instances created from this plan.")},
		{method: "PATCH", path: "/v3/service_instances/{new}", body: `{"maintenance_info": {"version": "one"}}`, status: 422, want: detail(10008, "Maintenance info Version must be a Semantic Version string")},
		{method: "PATCH", path: "/v3/service_instances/{new}", body: `{"parameters": {"z": 1}, "tags": ["y"], "metadata": {"labels": {"l": "v"}}}`, status: 202, save: "job"},
		{method: "GET", path: "/v3/service_instances/{new}", status: 200, want: `{"tags": ["x"], "last_operation": {"type": "update", "state": "in progress"}}`},
	})
	works = w.brokered(cf.OpSucceeded, "")
	if ch := works[0].Change; ch == nil || ch.Name != nil || ch.PlanGUID != "" || len(*ch.Tags) != 1 || *ch.Labels["l"] != "v" {
		t.Errorf("got the change %+v", ch)
	}
	w.run(t, []step{
		{method: "DELETE", path: "/v3/service_instances/{new}", status: 202},
		{method: "GET", path: "/v3/service_instances/{new}", status: 200, want: `{"last_operation": {"type": "delete", "state": "in progress"}}`},
		{method: "GET", path: "/v3/service_instances/{new}/permissions", as: "space_auditor", status: 200, want: `{"manage": false, "read": true}`},
		{method: "GET", path: "/v3/service_instances/{new}/permissions", as: "nobody", status: 200, want: `{"manage": false, "read": false}`},
		{method: "GET", path: "/v3/service_instances/{new}/permissions", as: "space_developer", status: 200, want: `{"manage": true, "read": true}`},
		{method: "DELETE", path: "/v3/service_instances/{new}?purge=true", as: "space_developer", status: 403},
	})
	w.brokered(cf.OpSucceeded, "")
	w.run(t, []step{{method: "GET", path: "/v3/service_instances/{new}", status: 404}})
}

// first is the GUID of the first of a list.
func (w *world) first(path string) string {
	w.t.Helper()
	got := w.ask("admin", "GET", path, "", "")
	var list struct {
		Resources []struct {
			GUID string `json:"guid"`
		} `json:"resources"`
	}
	if err := json.Unmarshal([]byte(got.text), &list); err != nil || len(list.Resources) == 0 {
		w.t.Fatalf("%s: got %s, %v; want one", path, got.text, err)
	}
	return list.Resources[0].GUID
}

// TestBindingsOfOneInstance binds an app to the same instance again and again.
func TestBindingsOfOneInstance(t *testing.T) {
	w := newWorld(t)
	w.write(seedServices)
	multiple := bindTo("db-1", `"strategy": "multiple",`)
	w.run(t, []step{{method: "POST", path: "/v3/service_credential_bindings", body: bindTo("db-1", `"strategy": "all",`), status: 422, want: detail(10008, "Strategy must be 'single' or 'multiple'")}})
	for range (&control.Platform{}).MaxBindings() {
		w.run(t, []step{{method: "POST", path: "/v3/service_credential_bindings", body: multiple, status: 202}})
		got := w.ask("admin", "POST", "/v3/service_credential_bindings", multiple, "")
		if !strings.Contains(got.text, "There is already a binding in progress for this service instance and app (binding guid: ") {
			t.Errorf("got %s", got.text)
		}
		w.brokered(cf.OpSucceeded, "")
	}
	w.run(t, []step{
		{method: "POST", path: "/v3/service_credential_bindings", body: multiple, status: 422,
			want: detail(10008, "The app has too many bindings to this service instance (limit: 5). Consider deleting existing/orphaned bindings.")},
		{method: "POST", path: "/v3/service_credential_bindings", body: bindTo("db-1", ""), status: 422, want: detail(10008, "The app is already bound to the service instance")},
		{method: "POST", path: "/v3/service_credential_bindings", body: bindTo("db-1", `"name": "other", "strategy": "multiple",`), status: 422,
			want: detail(10008, "The binding name cannot be changed for the same app and service instance")},
	})
	newest := ""
	w.write(func(tx *store.Tx) error {
		rows, err := store.ServiceBindings.By(tx, "service_instance_guids", "db-1")
		newest = rows[len(rows)-1].GUID
		return err
	})
	w.run(t, []step{{method: "GET", path: "/v3/apps/app-1/env", status: 200,
		want: `{"system_env_json": {"VCAP_SERVICES": {"db": [{"binding_guid": "` + newest + `", "plan": "small", "provider": null, "tags": ["relational"]}]}}}`}})
	w.write(func(tx *store.Tx) error {
		b, err := store.ServiceBindings.Get(tx, newest)
		if err != nil {
			return err
		}
		b.LastOperation = cf.Begin(cf.OpDelete, cf.OpFailed, time.Now())
		return store.ServiceBindings.Update(tx, b)
	})
	w.run(t, []step{
		{method: "POST", path: "/v3/service_credential_bindings", body: multiple, status: 422,
			want: detail(10008, "A binding for this service instance and app is getting deleted or its deletion failed")},
		{method: "GET", path: "/v3/service_credential_bindings/" + newest + "/details", status: 404, want: detail(10010, "Deletion of service binding failed")},
	})
}

func TestNamesOfBindings(t *testing.T) {
	w := newWorld(t)
	w.write(seedServices)
	w.run(t, []step{
		{method: "POST", path: "/v3/service_credential_bindings", body: bindTo("db-1", `"name": "a b",`), status: 422,
			want: detail(10008, "The binding name is invalid. Valid characters are alphanumeric, underscore, and dash.")},
		{method: "POST", path: "/v3/service_credential_bindings", body: bindTo("db-1", `"name": "`+strings.Repeat("n", 256)+`",`), status: 422,
			want: detail(10008, "The binding name is invalid. App binding names must be less than 256 characters.")},
		{method: "POST", path: "/v3/service_credential_bindings", body: bindTo("db-1", `"name": "one",`), status: 202},
		{method: "POST", path: "/v3/service_credential_bindings", body: bindTo("db-2", `"name": "one",`), status: 422,
			want: detail(10008, "The binding name is invalid. Binding names must be unique for a given service instance and app. The app already has a binding with name 'one'.")},
		{method: "POST", path: "/v3/service_credential_bindings", body: bindTo("none", ""), status: 422, want: detail(10008, "The service instance could not be found: 'none'")},
		{method: "POST", path: "/v3/service_credential_bindings", body: strings.ReplaceAll(bindTo("db-1", ""), "app-1", "none"), status: 422, want: detail(10008, "The app could not be found: 'none'")},
		{method: "POST", path: "/v3/service_credential_bindings", body: `{"type": "x"}`, status: 422},
	})
}

func TestKeys(t *testing.T) {
	w := newWorld(t)
	w.write(seedServices)
	key := func(instance string) string {
		return `{"type": "key", "name": "k", "relationships": {"service_instance": {"data": {"guid": "` + instance + `"}}}}`
	}
	const taken = "The binding name is invalid. Key binding names must be unique. The service instance already has a key binding with "
	w.run(t, []step{
		{method: "POST", path: "/v3/service_credential_bindings", body: key("ups-1"), status: 422, want: detail(10008, "Service credential bindings of type 'key' are not supported for user-provided service instances.")},
		{method: "POST", path: "/v3/service_credential_bindings", body: `{"type": "key", "relationships": {"service_instance": {"data": {"guid": "db-1"}}}}`, status: 422, want: detail(10008, "Name must be a string, Name can't be blank")},
		{method: "POST", path: "/v3/service_credential_bindings", as: "space_supporter", body: key("db-1"), status: 403},
		{method: "POST", path: "/v3/service_credential_bindings", as: "space_developer", body: key("db-1"), status: 202, save: "job"},
		{method: "GET", path: "/v3/jobs/{job}", status: 200, want: `{"operation": "service_keys.create"}`},
		{method: "POST", path: "/v3/service_credential_bindings", body: key("db-1"), status: 422, want: detail(10008, taken+"name 'k'.")},
	})
	w.saved["key"] = w.first("/v3/service_credential_bindings?type=key&names=k&service_instance_guids=db-1")
	w.run(t, []step{{method: "GET", path: "/v3/service_credential_bindings/{key}/details", status: 404, want: detail(10010, "Creation of service key initial")}})
	w.brokered(cf.OpFailed, "no")
	w.run(t, []step{{method: "POST", path: "/v3/service_credential_bindings", body: key("db-1"), status: 202}})
	orphans := 0
	w.write(func(tx *store.Tx) error {
		ops, err := store.BrokerOperations.All(tx)
		for _, o := range ops {
			if o.Orphan != nil && o.Orphan.BindingGUID == w.saved["key"] && o.Orphan.InstanceGUID == "db-1" {
				orphans++
			}
		}
		return err
	})
	if orphans != 1 {
		t.Errorf("got %d orphans; want the failed key to be forgotten by its broker", orphans)
	}
	w.brokered(cf.OpSucceeded, "")
	w.saved["key"] = w.first("/v3/service_credential_bindings?type=key")
	w.run(t, []step{
		{method: "GET", path: "/v3/service_credential_bindings/{key}/details", status: 200, want: `{"credentials": {"uri": "mysql://h"}}`},
		{method: "DELETE", path: "/v3/service_credential_bindings/{key}", as: "space_supporter", status: 403},
		{method: "DELETE", path: "/v3/service_credential_bindings/{key}", status: 202, save: "job"},
		{method: "GET", path: "/v3/jobs/{job}", status: 200, want: `{"operation": "service_keys.delete", "links": {"service_credential_binding": {"href": "{url}/v3/service_credential_bindings/{key}"}}}`},
		{method: "DELETE", path: "/v3/service_credential_bindings/{key}", status: 422, want: detail(10008, "There is an operation in progress for the service binding.")},
		{method: "POST", path: "/v3/service_credential_bindings", body: key("db-1"), status: 422, want: detail(10008, taken+"the name 'k' that is getting deleted or its deletion failed.")},
	})
}
