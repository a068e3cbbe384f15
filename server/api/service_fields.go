package api

import (
	"slices"
	"strings"

	"cupola/server/control"
	"cupola/store"
	"cupola/store/cf"
)

// fieldSet is what "fields[x]" takes: the resources in Cloud Controller's order,
// each with its keys.
type fieldSet []struct {
	resource string
	keys     []string
}

// The fields of service instances, in a list and of one; of shared spaces,
// offerings and plans.
var (
	listedFields = fieldSet{
		{"space", []string{"guid", "name", "relationships.organization"}},
		{"space.organization", []string{"name", "guid"}},
		{"service_plan", []string{"guid", "name", "relationships.service_offering"}},
		{"service_plan.service_offering", []string{"name", "guid", "description", "documentation_url", "tags", "relationships.service_broker"}},
		{"service_plan.service_offering.service_broker", []string{"name", "guid"}},
	}
	shownFields = fieldSet{
		{"space", []string{"name", "guid"}},
		{"space.organization", []string{"name", "guid"}},
		{"service_plan", []string{"name", "guid"}},
		{"service_plan.service_offering", []string{"name", "guid", "description", "tags", "documentation_url"}},
		{"service_plan.service_offering.service_broker", []string{"name", "guid"}},
	}
	sharedFields = fieldSet{
		{"space", []string{"name", "guid", "relationships.organization"}},
		{"space.organization", []string{"name", "guid"}},
	}
	offeringFields = fieldSet{{"service_broker", []string{"guid", "name"}}}
	planFields     = fieldSet{{"service_offering.service_broker", []string{"guid", "name"}}}
)

// fieldsQuery is parseQuery for what takes "fields" of a set.
func fieldsQuery(c *call, t rows, set fieldSet, also ...string) (listQuery, error) {
	q, err := parseQuery(c, t, append(also, "fields")...)
	if err != nil {
		return q, err
	}
	return q, checkFields(q.fields, set)
}

// checkFields refuses fields that a set does not have.
func checkFields(asked map[string][]string, set fieldSet) error {
	var names []string
	for _, f := range set {
		names = append(names, f.resource)
		for _, key := range asked[f.resource] {
			if !slices.Contains(f.keys, key) {
				return badQuery("Fields valid keys for '%s' are: '%s'", f.resource, strings.Join(f.keys, "', '"))
			}
		}
	}
	for resource := range asked {
		if !slices.Contains(names, resource) {
			return badQuery("Fields [%s] valid resources are: '%s'", resource, strings.Join(names, "', '"))
		}
	}
	return nil
}

// picked is what "fields" wants of a thing.
func picked(keys []string, all doc) doc {
	d := doc{}
	for _, k := range keys {
		name, relation, nested := strings.Cut(k, ".")
		if !nested {
			if v, ok := all[k]; ok {
				d[k] = v
			}
			continue
		}
		d[name] = doc{relation: all[k]}
	}
	return d
}

// included is the "included" of an answer, which is made when it is needed.
func included(d doc) doc {
	if d["included"] == nil {
		d["included"] = doc{}
	}
	return d["included"].(doc)
}

// includeFields adds what "fields" wants of things, if it wants any of them.
func includeFields(d doc, key string, wanted []string, things []doc) {
	if wanted == nil {
		return
	}
	list := []doc{}
	for _, all := range things {
		list = append(list, picked(wanted, all))
	}
	included(d)[key] = list
}

// includeSpaceFields adds the requested fields of spaces and their orgs. The names of
// those that the actor does not see are left out.
func includeSpaceFields(c *call, d doc, fields map[string][]string, guids []string) error {
	if fields["space"] == nil && fields["space.organization"] == nil {
		return nil
	}
	spaces, err := store.Spaces.By(c.Tx, "guids", guids...)
	if err != nil {
		return err
	}
	seen, err := visibleGUIDs(c, store.Spaces, func(s *cf.Space) string { return s.GUID }, guids)
	if err != nil {
		return err
	}
	includeFields(d, "spaces", fields["space"], views(c, spaces, func(_ *call, s *cf.Space) doc {
		return with(fieldsOfPlace(s.GUID, s.Name, seen), doc{"relationships.organization": toOne(s.OrgGUID)})
	}))
	return includeOrgFields(c, d, fields["space.organization"], control.GUIDs(spaces, func(s *cf.Space) string { return s.OrgGUID }))
}

func includeOrgFields(c *call, d doc, wanted, guids []string) error {
	if wanted == nil {
		return nil
	}
	orgs, err := store.Orgs.By(c.Tx, "guids", guids...)
	if err != nil {
		return err
	}
	seen, err := visibleGUIDs(c, store.Orgs, func(o *cf.Org) string { return o.GUID }, guids)
	includeFields(d, "organizations", wanted, views(c, orgs, func(_ *call, o *cf.Org) doc { return fieldsOfPlace(o.GUID, o.Name, seen) }))
	return err
}

func fieldsOfPlace(guid, name string, seen map[string]bool) doc {
	if !seen[guid] {
		return doc{"guid": guid}
	}
	return doc{"guid": guid, "name": name}
}

// visibleGUIDs returns which of the rows the actor sees.
func visibleGUIDs[T any](c *call, t *store.Table[T], guid func(*T) string, guids []string) (map[string]bool, error) {
	rows, _, err := t.List(c.Tx, store.Query{Where: map[string][]string{"guids": guids}, Visible: c.Scope})
	seen := map[string]bool{}
	for _, v := range rows {
		seen[guid(v)] = true
	}
	return seen, err
}

// includeServiceFields adds the requested fields of the places, plans, offerings and
// brokers of service instances.
func includeServiceFields(c *call, d doc, fields map[string][]string, rows []*cf.ServiceInstance) error {
	if err := includeSpaceFields(c, d, fields, control.GUIDs(rows, func(i *cf.ServiceInstance) string { return i.SpaceGUID })); err != nil {
		return err
	}
	managed := control.Without(rows, func(i *cf.ServiceInstance) bool { return i.Type != cf.Managed })
	if len(managed) == 0 {
		return nil
	}
	plans, err := store.ServicePlans.By(c.Tx, "guids", control.GUIDs(managed, func(i *cf.ServiceInstance) string { return i.PlanGUID })...)
	if err != nil {
		return err
	}
	offerings, brokers, err := offersOf(c, plans)
	includeFields(d, "service_plans", fields["service_plan"], views(c, plans, fieldsOfPlan))
	includeFields(d, "service_offerings", fields["service_plan.service_offering"], views(c, offerings, fieldsOfOffering))
	includeFields(d, "service_brokers", fields["service_plan.service_offering.service_broker"], views(c, brokers, fieldsOfBroker))
	return err
}

// offersOf gives the offerings of plans, and their brokers.
func offersOf(c *call, plans []*cf.ServicePlan) ([]*cf.ServiceOffering, []*cf.ServiceBroker, error) {
	offerings, err := store.ServiceOfferings.By(c.Tx, "guids", control.GUIDs(plans, func(p *cf.ServicePlan) string { return p.OfferingGUID })...)
	if err != nil {
		return nil, nil, err
	}
	brokers, err := store.ServiceBrokers.By(c.Tx, "guids", control.GUIDs(offerings, brokerOfOffering)...)
	return offerings, brokers, err
}

func fieldsOfPlan(_ *call, p *cf.ServicePlan) doc {
	return doc{"guid": p.GUID, "name": p.Name, "relationships.service_offering": toOne(p.OfferingGUID)}
}

func fieldsOfOffering(_ *call, o *cf.ServiceOffering) doc {
	tags := o.Tags
	if tags == nil {
		tags = []string{}
	}
	return doc{"guid": o.GUID, "name": o.Name, "description": o.Description, "tags": tags,
		"documentation_url": control.OrNil(o.DocumentationURL()), "relationships.service_broker": toOne(o.BrokerGUID)}
}

func fieldsOfBroker(_ *call, b *cf.ServiceBroker) doc { return doc{"guid": b.GUID, "name": b.Name} }

var listServiceInstances = inTx(func(c *call) (*response, error) {
	q, err := fieldsQuery(c, store.ServiceInstances, listedFields)
	if err != nil {
		return nil, err
	}
	if kind := q.Where["type"]; kind != nil && kind[0] != cf.Managed && kind[0] != cf.UserProvided {
		return nil, badQuery("Type must be one of 'managed', 'user-provided'")
	}
	q.Visible = c.Scope
	rows, total, err := store.ServiceInstances.List(c.Tx, q.Query)
	if err != nil {
		return nil, err
	}
	if err := foreseePlans(c, rows); err != nil {
		return nil, err
	}
	d := page(c, q, rows, total, viewServiceInstance)
	return &response{body: d}, includeServiceFields(c, d, q.fields, rows)
})

func showServiceInstance(c *call) (*response, error) {
	q, err := fieldsQuery(c, noRows{}, shownFields)
	if err != nil {
		return nil, err
	}
	i, err := store.ServiceInstances.Visible(c.Tx, c.guid(), c.Scope)
	if err != nil {
		return nil, err
	}
	d := viewServiceInstance(c, i)
	return &response{body: d}, includeServiceFields(c, d, q.fields, []*cf.ServiceInstance{i})
}
