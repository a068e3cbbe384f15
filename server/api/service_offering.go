package api

import (
	"encoding/json"
	"slices"
	"strings"

	"cupola/server/authz"
	"cupola/server/control"
	"cupola/server/control/audit"
	"cupola/server/control/change"
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
	if raw == nil {
		return doc{}
	}
	return raw
}

// brokerFields checks "fields" of which one resource may be asked for, a
// service broker's name and guid, and gives those asked for.
func brokerFields(q listQuery, of string) ([]string, error) {
	for resource, keys := range q.fields {
		if resource != of {
			return nil, badQuery("Fields [%s] valid resources are: '%s'", resource, of)
		}
		for _, k := range keys {
			if k != "name" && k != "guid" {
				return nil, badQuery("Fields valid keys for '%s' are: 'guid', 'name'", of)
			}
		}
	}
	return q.fields[of], nil
}

// includeBrokers adds the brokers with the GUIDs to d, of each the fields.
func includeBrokers(c *call, d doc, guids, fields []string) error {
	if len(fields) == 0 {
		return nil
	}
	slices.Sort(guids)
	brokers, err := store.ServiceBrokers.By(c.Tx, "guids", slices.Compact(guids)...)
	if err != nil {
		return err
	}
	docs := []doc{}
	for _, b := range brokers {
		one := doc{}
		for _, f := range fields {
			one[f] = map[string]string{"name": b.Name, "guid": b.GUID}[f]
		}
		docs = append(docs, one)
	}
	addIncluded(d, "service_brokers", docs)
	return nil
}

func addIncluded(d doc, key string, docs []doc) {
	included, ok := d["included"].(doc)
	if !ok {
		included = doc{}
		d["included"] = included
	}
	included[key] = docs
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
func (c *call) browse() error {
	c.Actor, c.Scope = authz.NewActor("", "", "", nil, nil), &store.Scope{}
	hidden, err := c.Flag("hide_marketplace_from_unauthenticated_users")
	if err == nil && hidden.Enabled {
		err = cf.Errorf(cf.NotAuthenticated, "Authentication error")
	}
	return err
}

func listServiceOfferings(c *call) (*response, error) {
	q, err := parseQuery(c.Request.URL.Query(), store.ServiceOfferings, "fields")
	if err != nil {
		return nil, err
	}
	fields, err := brokerFields(q, "service_broker")
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
	return &response{body: d}, includeBrokers(c, d, control.GUIDs(found, brokerOfOffering), fields)
}

func brokerOfOffering(o *cf.ServiceOffering) string { return o.BrokerGUID }

func showServiceOffering(c *call) (*response, error) {
	q, err := parseQuery(c.Request.URL.Query(), noRows{}, "fields")
	if err != nil {
		return nil, err
	}
	fields, err := brokerFields(q, "service_broker")
	if err != nil {
		return nil, err
	}
	o, err := store.ServiceOfferings.Visible(c.Tx, c.guid(), c.Scope)
	if err != nil {
		return nil, err
	}
	d := viewServiceOffering(c, o)
	return &response{body: d}, includeBrokers(c, d, []string{o.BrokerGUID}, fields)
}

// serviceOffering is the offering of {guid}, if the actor sees it and satisfies
// the rule where its broker is.
func (c *call) serviceOffering() (*cf.ServiceOffering, error) {
	o, err := store.ServiceOfferings.Visible(c.Tx, c.guid(), c.Scope)
	if err != nil {
		return nil, err
	}
	return o, c.permitBroker(o.BrokerGUID)
}

// permitBroker is permit where a broker is: in its space, or nowhere.
func (c *call) permitBroker(guid string) error {
	b, err := store.ServiceBrokers.Get(c.Tx, guid)
	if err != nil {
		return err
	}
	if b.SpaceGUID == "" {
		return c.PermitAdmin()
	}
	_, err = c.InSpace(b.SpaceGUID)
	return err
}

func updateServiceOffering(c *call) (*response, error) {
	var req struct {
		Metadata *change.Metadata `json:"metadata"`
	}
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	o, err := c.serviceOffering()
	if err != nil {
		return nil, err
	}
	if err := req.Metadata.Apply(&o.Metadata); err != nil {
		return nil, err
	}
	if err := store.ServiceOfferings.Update(c.Tx, o); err != nil {
		return nil, err
	}
	return ok(viewServiceOffering(c, o))
}

// deleteServiceOffering forgets an offering that has no plans, or purges one
// with all that was made of it.
func deleteServiceOffering(c *call) (*response, error) {
	q, err := parseQuery(c.Request.URL.Query(), noRows{}, "purge")
	if err != nil {
		return nil, err
	}
	if p := q.Where["purge"]; p != nil && !slices.Contains([]string{"true", "false"}, strings.Join(p, ",")) {
		return nil, badQuery("Purge only accepts values 'true' or 'false'")
	}
	o, err := c.serviceOffering()
	if err != nil {
		return nil, err
	}
	plans, err := store.ServicePlans.By(c.Tx, "service_offering_guids", o.GUID)
	if err != nil {
		return nil, err
	}
	request := doc{}
	if slices.Contains(q.Where["purge"], "true") {
		request["purge"] = true
		if err := services.PurgePlans(c.Session, plans); err != nil {
			return nil, err
		}
	} else if len(plans) > 0 {
		return nil, cf.Unprocessable("Please delete the service_plans associations for your services.")
	}
	if err := store.ServiceOfferings.Delete(c.Tx, o.GUID); err != nil {
		return nil, err
	}
	if err := c.Audit(audit.ServiceOfferingDelete, audit.Target{Type: "service", GUID: o.GUID, Name: o.Name}, doc{"request": request}); err != nil {
		return nil, err
	}
	return noContent()
}
