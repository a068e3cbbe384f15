package api

import (
	"testing"

	"cupola/store"
)

// What the platform must not ask of a broker whose catalog rules it out (Open
// Service Broker API v2.17: Catalog Management, Updating a Service Instance,
// Binding), in Cloud Controller's words (CC:
// app/controllers/v3/service_instances_controller.rb,
// app/actions/service_credential_binding_app_create.rb).
func TestWhatTheCatalogRulesOut(t *testing.T) {
	w := newWorld(t)
	w.write(seedServices)
	w.write(func(tx *store.Tx) error {
		o, err := store.ServiceOfferings.Get(tx, "offering-s")
		if err != nil {
			return err
		}
		o.PlanUpdateable, o.Bindable = false, false
		return store.ServiceOfferings.Update(tx, o)
	})
	w.run(t, []step{
		{method: "PATCH", path: "/v3/service_instances/db-1", body: `{"relationships": {"service_plan": {"data": {"guid": "plan-l"}}}}`, status: 422,
			want: detail(10008, "The service does not support changing plans.")},
		{method: "POST", path: "/v3/service_credential_bindings", body: bindTo("db-1", ""), status: 422, want: detail(10008, "Service plan does not allow bindings")},
	})
	if works := w.brokered("", ""); len(works) != 0 {
		t.Errorf("the broker is asked for %+v", works)
	}
}
