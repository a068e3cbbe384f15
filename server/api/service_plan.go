package api

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"cupola/server/control"
	"cupola/server/control/change"
	"cupola/server/control/services"
	"cupola/store"
	"cupola/store/cf"
)

// planInclude is what plans can include.
const planInclude = "include=space.organization|service_offering"

// planViewer shows plans, each with what of its offering and broker it takes.
type planViewer struct {
	offerings map[string]*cf.ServiceOffering
	brokers   map[string]*cf.ServiceBroker
	types     map[string]string // visibility by GUID of the plan
}

func newPlanViewer(c *call, plans []*cf.ServicePlan) (*planViewer, error) {
	v := &planViewer{offerings: map[string]*cf.ServiceOffering{}, brokers: map[string]*cf.ServiceBroker{}}
	offerings, brokers, err := offersOf(c, plans)
	if err != nil {
		return nil, err
	}
	for _, o := range offerings {
		v.offerings[o.GUID] = o
	}
	for _, b := range brokers {
		v.brokers[b.GUID] = b
	}
	v.types, err = store.ServicePlans.Visibilities(c.Tx, plans)
	return v, err
}

func (v *planViewer) broker(p *cf.ServicePlan) *cf.ServiceBroker {
	return v.brokers[v.offerings[p.OfferingGUID].BrokerGUID]
}

func (v *planViewer) view(c *call, p *cf.ServicePlan) doc {
	o := v.offerings[p.OfferingGUID]
	relationships := doc{"service_offering": toOne(o.GUID)}
	links := doc{"self": c.link("/v3/service_plans/%s", p.GUID), "service_offering": c.link("/v3/service_offerings/%s", o.GUID),
		"visibility": c.link("/v3/service_plans/%s/visibility", p.GUID)}
	if space := v.broker(p).SpaceGUID; space != "" {
		relationships["space"] = toOne(space)
		links["space"] = c.link("/v3/spaces/%s", space)
	}
	var maintenance any = doc{}
	if p.MaintenanceInfo != nil {
		maintenance = p.MaintenanceInfo
	}
	return with(resource(p.Resource), doc{
		"name": p.Name, "visibility_type": v.types[p.GUID], "available": p.Active, "free": p.Free, "costs": costs(p.BrokerMetadata),
		"description": p.Description, "maintenance_info": maintenance, "metadata": metadata(p.Metadata),
		"broker_catalog": doc{"id": p.CatalogID, "metadata": rawOrEmpty(p.BrokerMetadata), "maximum_polling_duration": p.MaximumPollingDuration,
			"features": doc{"bindable": p.MayBind(o), "plan_updateable": p.MayChange(o)}},
		"schemas": doc{
			"service_instance": doc{"create": parameters(p.Schemas.CreateInstance), "update": parameters(p.Schemas.UpdateInstance)},
			"service_binding":  doc{"create": parameters(p.Schemas.CreateBinding)},
		},
		"relationships": relationships, "links": links,
	})
}

func parameters(schema json.RawMessage) doc { return doc{"parameters": rawOrEmpty(schema)} }

// costs are the costs that a plan's metadata tells, none when any is not as it
// should be: Cloud Controller's rule.
func costs(raw json.RawMessage) []doc {
	var m struct {
		Costs []struct {
			Amount map[string]*float64 `json:"amount"`
			Unit   *string             `json:"unit"`
		} `json:"costs"`
	}
	list := []doc{}
	if json.Unmarshal(raw, &m) != nil {
		return list
	}
	for _, cost := range m.Costs {
		if len(cost.Amount) == 0 || cost.Unit == nil || *cost.Unit == "" {
			return []doc{}
		}
		for _, currency := range slices.Sorted(maps.Keys(cost.Amount)) {
			amount := cost.Amount[currency]
			if currency == "" || amount == nil {
				return []doc{}
			}
			list = append(list, doc{"currency": strings.ToUpper(currency), "amount": *amount, "unit": *cost.Unit})
		}
	}
	return list
}

func listServicePlans(c *call) (*response, error) {
	q, err := parseQuery(c, store.ServicePlans, "fields", planInclude)
	if err != nil {
		return nil, err
	}
	if err := checkAvailable(q); err != nil {
		return nil, err
	}
	if err := checkFields(q.fields, planFields); err != nil {
		return nil, err
	}
	q.Visible = c.Scope
	found, total, err := store.ServicePlans.List(c.Tx, q.Query)
	if err != nil {
		return nil, err
	}
	v, err := newPlanViewer(c, found)
	if err != nil {
		return nil, err
	}
	d := page(c, q, found, total, v.view)
	return &response{body: d}, v.include(c, d, found, q)
}

func showServicePlan(c *call) (*response, error) {
	q, err := fieldsQuery(c, noRows{}, planFields, planInclude)
	if err != nil {
		return nil, err
	}
	p, err := store.ServicePlans.Visible(c.Tx, c.guid(), c.Scope)
	if err != nil {
		return nil, err
	}
	v, err := newPlanViewer(c, []*cf.ServicePlan{p})
	if err != nil {
		return nil, err
	}
	d := v.view(c, p)
	return &response{body: d}, v.include(c, d, []*cf.ServicePlan{p}, q)
}

// include adds to d what the query asks for.
func (v *planViewer) include(c *call, d doc, plans []*cf.ServicePlan, q listQuery) error {
	for _, what := range q.include {
		if what == "service_offering" {
			docs, err := including(c, store.ServiceOfferings, viewServiceOffering, control.GUIDs(plans, func(p *cf.ServicePlan) string { return p.OfferingGUID }))
			if err != nil {
				return err
			}
			included(d)["service_offerings"] = docs
			continue
		}
		if err := v.includeSpaces(c, d, plans); err != nil {
			return err
		}
	}
	return includeBrokers(c, d, control.GUIDs(plans, func(p *cf.ServicePlan) string { return v.broker(p).GUID }), q.fields["service_offering.service_broker"])
}

func (v *planViewer) includeSpaces(c *call, d doc, plans []*cf.ServicePlan) error {
	spaces := control.GUIDs(plans, func(p *cf.ServicePlan) string { return v.broker(p).SpaceGUID })
	docs, err := including(c, store.Spaces, viewSpace, spaces)
	if err != nil {
		return err
	}
	orgs, err := includingOrgsOf(c, spaces)
	included(d)["spaces"] = docs
	included(d)["organizations"] = orgs
	return err
}

var findPlan = byGUID(services.FindPlan)

func updateServicePlan(c *call) (*response, error) {
	var req change.Labels
	p, err := findPlan(c)
	if err != nil {
		return nil, err
	}
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	if err := req.Metadata.Apply(&p.Metadata); err != nil {
		return nil, err
	}
	if err := store.ServicePlans.Update(c.Tx, p); err != nil {
		return nil, err
	}
	v, err := newPlanViewer(c, []*cf.ServicePlan{p})
	if err != nil {
		return nil, err
	}
	return ok(v.view(c, p))
}
