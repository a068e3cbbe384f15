package api

import (
	"encoding/json"
	"time"

	"cupola/store"
	"cupola/store/cf"
)

// seedServices makes a user-provided service instance ups-1, with a binding of
// app-1 and of route-1, and those of a broker db-1 and db-2; db-2 is shared with
// space-3.
func seedServices(tx *store.Tx) error {
	made := cf.Begin(cf.OpCreate, cf.OpSucceeded, time.Now())
	secret := json.RawMessage(`{"password":"secret"}`)
	for _, row := range []func() error{
		func() error {
			return store.Spaces.Insert(tx, &cf.Space{Resource: guid("space-3"), Name: "near", OrgGUID: "org-1"})
		},
		func() error {
			return store.Roles.Insert(tx, &cf.Role{Type: cf.SpaceDeveloper, UserGUID: "user-space_developer", OrgGUID: "org-1", SpaceGUID: "space-3"})
		},
		func() error {
			return store.FeatureFlags.Put(tx, &cf.FeatureFlag{Name: "service_instance_sharing", Enabled: true})
		},
		func() error {
			return store.Routes.Insert(tx, &cf.Route{Resource: guid("route-2"), SpaceGUID: "space-1", DomainGUID: "domain-1", Host: "two"})
		},
		func() error {
			return store.ServiceInstances.Insert(tx, &cf.ServiceInstance{Resource: guid("ups-1"), Name: "ups", Type: cf.UserProvided, SpaceGUID: "space-1",
				Credentials: secret, RouteServiceURL: "https://r.test", LastOperation: made})
		},
		func() error {
			return store.ServiceBindings.Insert(tx, &cf.ServiceBinding{Resource: guid("binding-1"), Type: cf.BindingApp, InstanceGUID: "ups-1", AppGUID: "app-1",
				Credentials: secret, LastOperation: made})
		},
		func() error {
			return store.RouteBindings.Insert(tx, &cf.RouteBinding{Resource: guid("rb-1"), InstanceGUID: "ups-1", RouteGUID: "route-1", RouteServiceURL: "https://r.test", LastOperation: made})
		},
		func() error { return seedOffering(tx) },
		func() error {
			return store.ServiceInstances.Insert(tx, &cf.ServiceInstance{Resource: guid("db-1"), Name: "db1", Type: cf.Managed, SpaceGUID: "space-1", PlanGUID: "plan-s", LastOperation: made})
		},
		func() error {
			return store.ServiceInstances.Insert(tx, &cf.ServiceInstance{Resource: guid("db-2"), Name: "db2", Type: cf.Managed, SpaceGUID: "space-1", PlanGUID: "plan-s",
				SharedSpaces: []string{"space-3"}, LastOperation: made})
		},
	} {
		if err := row(); err != nil {
			return err
		}
	}
	return nil
}

// seedOffering makes a broker that offers a db, small and large.
func seedOffering(tx *store.Tx) error {
	err := store.ServiceBrokers.Insert(tx, &cf.ServiceBroker{Resource: guid("broker-s"), Name: "shared", URL: "http://b.test", State: cf.BrokerAvailable})
	if err != nil {
		return err
	}
	err = store.ServiceOfferings.Insert(tx, &cf.ServiceOffering{Resource: guid("offering-s"), BrokerGUID: "broker-s", CatalogID: "o", Name: "db", Active: true,
		Bindable: true, PlanUpdateable: true, InstancesRetrievable: true, Tags: []string{"relational"}, BrokerMetadata: json.RawMessage(`{"shareable":true}`)})
	if err != nil {
		return err
	}
	for guid, name := range map[string]string{"plan-s": "small", "plan-l": "large"} {
		p := &cf.ServicePlan{Resource: cf.Resource{GUID: guid}, OfferingGUID: "offering-s", CatalogID: name, Name: name, Active: true, Free: true, Public: true}
		if err := store.ServicePlans.Insert(tx, p); err != nil {
			return err
		}
	}
	return nil
}
