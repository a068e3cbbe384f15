package api

import (
	"encoding/json"
	"slices"
	"strings"

	"cupola/server/authz"
	"cupola/server/control"
	"cupola/server/control/services"
	"cupola/store"
	"cupola/store/cf"
)

func viewServiceOffering(c *call, o *cf.ServiceOffering) doc {
	return with(resource(o.Resource), doc{
		"name": o.Name, "description": o.Description, "available": o.Active, "tags": orNone(o.Tags), "requires": orNone(o.Requires),
		"shareable": o.Shareable(), "documentation_url": o.DocumentationURL(), "metadata": metadata(o.Metadata),
		"broker_catalog": doc{"id": o.CatalogID, "metadata": rawOrEmpty(o.BrokerMetadata), "features": doc{
			"plan_updateable": o.PlanUpdateable, "bindable": o.Bindable, "instances_retrievable": o.InstancesRetrievable,
			"bindings_retrievable": o.BindingsRetrievable, "allow_context_updates": o.AllowContextUpdates}},
		"relationships": doc{"service_broker": toOne(o.BrokerGUID)},
		"links": doc{
			"self":           c.link("/v3/service_offerings/%s", o.GUID),
			"service_plans":  c.link("/v3/service_plans?service_offering_guids=%s", o.GUID),
			"service_broker": c.link("/v3/service_brokers/%s", o.BrokerGUID),
		},
	})
}

func rawOrEmpty(raw json.RawMessage) any {
	if raw == nil || string(raw) == "null" {
		return doc{}
	}
	return raw
}

// includeBrokers adds to d the requested fields of the brokers with the GUIDs.
func includeBrokers(c *call, d doc, guids, wanted []string) error {
	if wanted == nil {
		return nil
	}
	brokers, err := store.ServiceBrokers.By(c.Tx, "guids", guids...)
	includeFields(d, "service_brokers", wanted, views(c, brokers, fieldsOfBroker))
	return err
}

// checkAvailable wants "available" to be a boolean, if it is there.
func checkAvailable(q listQuery) error {
	for _, v := range q.Where["available"] {
		if v != "true" && v != "false" {
			return badQuery("Available must be 'true' or 'false'")
		}
	}
	return nil
}

// browse lets a guest look at the marketplace, unless the operator hides it.
func browse(c *call) error {
	c.Actor, c.Scope = authz.NewActor("", "", "", nil, nil), &store.Scope{}
	hidden, err := c.Flag("hide_marketplace_from_unauthenticated_users")
	if err == nil && hidden.Enabled {
		err = cf.Errorf(cf.NotAuthenticated, "Authentication error")
	}
	return err
}

func listServiceOfferings(c *call) (*response, error) {
	q, err := fieldsQuery(c, store.ServiceOfferings, offeringFields)
	if err != nil {
		return nil, err
	}
	if err := checkAvailable(q); err != nil {
		return nil, err
	}
	q.Visible = c.Scope
	found, total, err := store.ServiceOfferings.List(c.Tx, q.Query)
	if err != nil {
		return nil, err
	}
	d := page(c, q, found, total, viewServiceOffering)
	return &response{body: d}, includeBrokers(c, d, control.GUIDs(found, brokerOfOffering), q.fields["service_broker"])
}

func brokerOfOffering(o *cf.ServiceOffering) string { return o.BrokerGUID }

func showServiceOffering(c *call) (*response, error) {
	q, err := fieldsQuery(c, noRows{}, offeringFields)
	if err != nil {
		return nil, err
	}
	o, err := store.ServiceOfferings.Visible(c.Tx, c.guid(), c.Scope)
	if err != nil {
		return nil, err
	}
	d := viewServiceOffering(c, o)
	return &response{body: d}, includeBrokers(c, d, []string{o.BrokerGUID}, q.fields["service_broker"])
}

var findOffering = byGUID(services.FindOffering)

func metadataOfOffering(o *cf.ServiceOffering) *cf.Metadata { return &o.Metadata }

// deleteServiceOffering forgets an offering that has no plans, or purges one
// with all that was made of it.
func deleteServiceOffering(c *call) (*response, error) {
	q, err := parseQuery(c, noRows{}, "purge")
	if err != nil {
		return nil, err
	}
	if p := q.Where["purge"]; p != nil && !slices.Contains([]string{"true", "false"}, strings.Join(p, ",")) {
		return nil, badQuery("Purge only accepts values 'true' or 'false'")
	}
	verb := services.RemoveOffering
	if slices.Contains(q.Where["purge"], "true") {
		verb = services.PurgeOffering
	}
	return drop(findOffering, verb)(c)
}
