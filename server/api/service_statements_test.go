package api

import (
	"fmt"
	"testing"

	"cupola/store"
	"cupola/store/cf"
)

// TestServiceListsTakeFewStatements lists few services and what belongs to them,
// and many: the database is asked no more often for many.
func TestServiceListsTakeFewStatements(t *testing.T) {
	w := newWorld(t)
	paths := []string{
		"/v3/service_plans?per_page=500&include=service_offering,space.organization&fields[service_offering.service_broker]=name,guid",
		"/v3/service_offerings?per_page=500&fields[service_broker]=name,guid",
		"/v3/service_brokers?per_page=500",
		"/v3/service_instances?per_page=500&fields[service_plan]=name,guid&fields[service_plan.service_offering]=name,guid&fields[service_plan.service_offering.service_broker]=name,guid&fields[space]=name,guid&fields[space.organization]=name,guid",
		"/v3/service_credential_bindings?per_page=500&include=app,service_instance",
		"/v3/service_route_bindings?per_page=500&include=route,service_instance",
		"/v3/apps/app-1/env",
		"/v3/processes/app-1/stats",
	}
	few := map[string]int64{}
	for _, upTo := range []int{5, 100} {
		w.offer(upTo)
		for _, p := range paths {
			before := w.store.Statements()
			w.run(t, []step{{method: "GET", path: p, status: 200}})
			n := w.store.Statements() - before
			if upTo > 5 && n > few[p]+3 {
				t.Errorf("%s: %d statements for few, and %d for many", p, few[p], n)
			}
			few[p] = n
		}
	}
}

// offer makes brokers with an offering, a plan, an instance, and what is bound
// to it, each.
func (w *world) offer(upTo int) {
	w.t.Helper()
	w.write(func(tx *store.Tx) error {
		have, err := store.ServiceBrokers.All(tx)
		for n := len(have); n < upTo && err == nil; n++ {
			err = offerOne(tx, fmt.Sprint(n))
		}
		return err
	})
}

func offerOne(tx *store.Tx, n string) error {
	done := cf.Begin(cf.OpCreate, cf.OpSucceeded, tx.Now)
	for _, row := range []func() error{
		func() error {
			return store.ServiceBrokers.Insert(tx, &cf.ServiceBroker{Resource: guid("bk-" + n), Name: "bk-" + n, URL: "http://b", State: cf.BrokerAvailable})
		},
		func() error {
			return store.ServiceOfferings.Insert(tx, &cf.ServiceOffering{Resource: guid("of-" + n), Name: "of-" + n, BrokerGUID: "bk-" + n, CatalogID: n, Bindable: true, Active: true})
		},
		func() error {
			return store.ServicePlans.Insert(tx, &cf.ServicePlan{Resource: guid("pl-" + n), Name: "pl-" + n, OfferingGUID: "of-" + n, CatalogID: n, Active: true})
		},
		func() error {
			return store.ServiceInstances.Insert(tx, &cf.ServiceInstance{Resource: guid("in-" + n), Name: "in-" + n, Type: cf.Managed, SpaceGUID: "space-1", PlanGUID: "pl-" + n, LastOperation: done})
		},
		func() error {
			return store.ServiceBindings.Insert(tx, &cf.ServiceBinding{Resource: guid("bi-" + n), Type: cf.BindingApp, InstanceGUID: "in-" + n, AppGUID: "app-1", LastOperation: done})
		},
		func() error {
			return store.Routes.Insert(tx, &cf.Route{Resource: guid("rt-" + n), SpaceGUID: "space-1", DomainGUID: "domain-1", Host: "rt-" + n})
		},
		func() error {
			return store.RouteBindings.Insert(tx, &cf.RouteBinding{Resource: guid("rb-" + n), InstanceGUID: "in-" + n, RouteGUID: "rt-" + n, LastOperation: done})
		},
	} {
		if err := row(); err != nil {
			return err
		}
	}
	return nil
}
