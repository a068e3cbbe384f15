package broker

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"cupola/server/control/audit"
	"cupola/server/osb"
	"cupola/store"
	"cupola/store/cf"
)

// catalogSync makes offerings and plans what a broker's catalog says.
type catalogSync struct {
	tx      *store.Tx
	broker  *cf.ServiceBroker
	old     []*cf.ServiceOffering
	plans   map[string][]*cf.ServicePlan // by the GUID of the offering
	used    map[string]bool              // GUIDs of the plans that have instances
	missing map[string][]string          // names of deactivated plans by that of the offering
}

// newCatalogSync reads what the platform has of a broker.
func newCatalogSync(tx *store.Tx, broker *cf.ServiceBroker) (*catalogSync, error) {
	c := &catalogSync{tx: tx, broker: broker, plans: map[string][]*cf.ServicePlan{}, used: map[string]bool{}, missing: map[string][]string{}}
	var err error
	if c.old, err = store.ServiceOfferings.By(tx, "service_broker_guids", broker.GUID); err != nil {
		return nil, err
	}
	for _, o := range c.old {
		if c.plans[o.GUID], err = store.ServicePlans.By(tx, "service_offering_guids", o.GUID); err != nil {
			return nil, err
		}
		for _, p := range c.plans[o.GUID] {
			n, err := store.ServiceInstances.Count(tx, store.Query{Where: map[string][]string{"service_plan_guids": {p.GUID}}})
			if err != nil {
				return nil, err
			}
			c.used[p.GUID] = n > 0
		}
	}
	return c, nil
}

func (c *catalogSync) known() osb.Known {
	k := osb.Known{Broker: c.broker.Name}
	for _, o := range c.old {
		s := osb.KnownService{ID: o.CatalogID, Name: o.Name}
		for _, p := range c.plans[o.GUID] {
			s.Used = s.Used || c.used[p.GUID]
			s.Plans = append(s.Plans, osb.KnownID{ID: p.CatalogID, Name: p.Name})
		}
		k.Services = append(k.Services, s)
	}
	return k
}

// apply makes rows what the catalog says, and returns the warnings. A plan that
// the catalog no longer has stays, inactive, while it has instances.
func (c *catalogSync) apply(catalog *osb.Catalog) (warnings []string, err error) {
	listed := map[string]bool{}
	dashboards := false
	for _, s := range catalog.Services {
		listed[s.ID] = true
		dashboards = dashboards || s.DashboardClient
		if err := c.putOffering(s); err != nil {
			return nil, err
		}
	}
	for _, o := range c.old {
		if listed[o.CatalogID] {
			continue
		}
		if err := c.dropOffering(o); err != nil {
			return nil, err
		}
	}
	if w := c.deactivated(); w != "" {
		warnings = append(warnings, w)
	}
	if dashboards {
		warnings = append(warnings, "Warning: This broker includes configuration for a dashboard client. "+
			"Auto-creation of OAuth2 clients has been disabled in this Cloud Foundry instance. "+
			"The broker catalog has been updated but its dashboard client configuration will be ignored.")
	}
	return warnings, nil
}

func (c *catalogSync) putOffering(s osb.Service) error {
	o := &cf.ServiceOffering{BrokerGUID: c.broker.GUID, CatalogID: s.ID}
	if i := slices.IndexFunc(c.old, func(o *cf.ServiceOffering) bool { return o.CatalogID == s.ID }); i >= 0 {
		o = c.old[i]
	}
	was, before := jsonOf(o), offered(o)
	o.Name, o.Description, o.Active = strings.TrimSpace(s.Name), s.Description, len(s.Plans) > 0
	o.Bindable, o.PlanUpdateable, o.AllowContextUpdates = s.Bindable, s.PlanUpdateable, s.AllowContextUpdates
	o.InstancesRetrievable, o.BindingsRetrievable = s.InstancesRetrievable, s.BindingsRetrievable
	o.Tags, o.Requires, o.BrokerMetadata = s.Tags, s.Requires, s.Metadata
	if err := put(c, store.ServiceOfferings, was, o, thing{"service", &o.Resource, o.Name, before, offered(o)}); err != nil {
		return err
	}
	listed := map[string]bool{}
	for _, p := range s.Plans {
		listed[p.ID] = true
		if err := c.putPlan(o, p); err != nil {
			return err
		}
	}
	for _, p := range c.plans[o.GUID] {
		if listed[p.CatalogID] {
			continue
		}
		if err := c.dropPlan(o, p); err != nil {
			return err
		}
	}
	return nil
}

func (c *catalogSync) putPlan(o *cf.ServiceOffering, s osb.Plan) error {
	p := &cf.ServicePlan{OfferingGUID: o.GUID, CatalogID: s.ID}
	known := c.plans[o.GUID]
	if i := slices.IndexFunc(known, func(p *cf.ServicePlan) bool { return p.CatalogID == s.ID }); i >= 0 {
		p = known[i]
	}
	was, before := jsonOf(p), planned(p, o)
	p.Name, p.Description, p.Active, p.Free = strings.TrimSpace(s.Name), s.Description, true, s.Free
	p.Bindable, p.PlanUpdateable, p.MaximumPollingDuration = s.Bindable, s.PlanUpdateable, s.MaximumPollingDuration
	p.BrokerMetadata, p.BindingRotatable = s.Metadata, s.BindingRotatable
	p.Schemas = cf.PlanSchemas{CreateInstance: s.CreateInstance, UpdateInstance: s.UpdateInstance, CreateBinding: s.CreateBinding}
	p.MaintenanceInfo = nil
	if s.MaintenanceVersion != "" {
		p.MaintenanceInfo = &cf.MaintenanceInfo{Version: s.MaintenanceVersion, Description: s.MaintenanceDescription}
	}
	return put(c, store.ServicePlans.Table, was, p, thing{"service_plan", &p.Resource, p.Name, before, planned(p, o)})
}

// dropOffering takes an offering that is no longer listed out of use.
func (c *catalogSync) dropOffering(o *cf.ServiceOffering) error {
	used := false
	for _, p := range c.plans[o.GUID] {
		used = used || c.used[p.GUID]
		if err := c.dropPlan(o, p); err != nil {
			return err
		}
	}
	if !used {
		if err := store.ServiceOfferings.Delete(c.tx, o.GUID); err != nil {
			return err
		}
		return c.event("service", "delete", o.GUID, o.Name, nil)
	}
	o.Active = false
	return store.ServiceOfferings.Update(c.tx, o)
}

func (c *catalogSync) dropPlan(o *cf.ServiceOffering, p *cf.ServicePlan) error {
	if !c.used[p.GUID] {
		if err := store.ServicePlans.Delete(c.tx, p.GUID); err != nil {
			return err
		}
		return c.event("service_plan", "delete", p.GUID, p.Name, nil)
	}
	c.missing[o.Name] = append(c.missing[o.Name], p.Name)
	p.Active = false
	return store.ServicePlans.Update(c.tx, p)
}

// deactivated is Cloud Controller's warning of plans that stay inactive; "" for
// none.
func (c *catalogSync) deactivated() string {
	if len(c.missing) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("Warning: Service plans are missing from the broker's catalog (" + c.broker.URL + "/v2/catalog) but can not be removed from " +
		"Cloud Foundry while instances exist. The plans have been deactivated to prevent users from attempting to provision new " +
		"instances of these plans. The broker should continue to support bind, unbind, and delete for existing instances; if " +
		"these operations fail contact your broker provider.\n")
	for _, name := range slices.Sorted(maps.Keys(c.missing)) {
		slices.Sort(c.missing[name])
		b.WriteString("\nService Offering: " + name + "\nPlans deactivated: " + strings.Join(c.missing[name], ", ") + "\n")
	}
	return b.String()
}

// thing is an offering or a plan, for events.
type thing struct {
	kind string
	*cf.Resource
	name          string
	before, after audit.Data
}

// put writes a row if it is new, or other than it was.
func put[T any](c *catalogSync, t *store.Table[T], was []byte, row *T, th thing) error {
	if th.GUID == "" {
		if err := t.Insert(c.tx, row); err != nil {
			return err
		}
		return c.event(th.kind, "create", th.GUID, th.name, th.after)
	}
	if bytes.Equal(was, jsonOf(row)) {
		return nil
	}
	if err := t.Update(c.tx, row); err != nil {
		return err
	}
	return c.event(th.kind, "update", th.GUID, th.name, changed(th.before, th.after))
}

// jsonOf is a row to compare with another.
func jsonOf(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		return nil // a row that cannot be compared is another
	}
	return text
}

// event records what the broker did by its catalog.
func (c *catalogSync) event(kind, verb, guid, name string, data audit.Data) error {
	return audit.Write(c.tx, brokerActor(c.broker), audit.Of(kind, verb), audit.Target{Type: kind, GUID: guid, Name: name}, data)
}

// brokerActor is a service broker as the actor of what follows from its answers.
func brokerActor(b *cf.ServiceBroker) cf.Actor {
	return cf.Actor{GUID: b.GUID, Type: "service_broker", Name: b.Name}
}
