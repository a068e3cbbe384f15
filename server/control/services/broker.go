package services

import (
	"slices"

	"cupola/server/authz"
	"cupola/server/control"
	"cupola/server/control/audit"
	"cupola/store"
	"cupola/store/cf"
)

// BrokerEvent records an event of a service broker.
func BrokerEvent(c *control.Session, kind audit.Type, b *cf.ServiceBroker, data audit.Data) error {
	return c.Audit(kind, audit.Target{Type: "service_broker", GUID: b.GUID, Name: b.Name}, data)
}

// RemoveBroker deletes a broker with what it offers.
func RemoveBroker(c *control.Session, b *cf.ServiceBroker) error {
	if err := store.ServiceBrokers.Delete(c.Tx, b.GUID); err != nil {
		return err
	}
	return BrokerEvent(c, audit.ServiceBrokerDelete, b, audit.Data{"request": audit.Data{}})
}

// SetOrgs lets orgs see a plan, and those that do already only when add is set.
func SetOrgs(c *control.Session, p *cf.ServicePlan, orgs []string, add bool) error {
	visible, err := store.ServicePlanVisibilities.By(c.Tx, "service_plan_guids", p.GUID)
	if err != nil {
		return err
	}
	for _, v := range visible {
		i := slices.Index(orgs, v.OrgGUID)
		if i >= 0 {
			orgs = slices.Delete(orgs, i, i+1)
			continue
		}
		if add {
			continue
		}
		if err := store.ServicePlanVisibilities.Delete(c.Tx, v.GUID); err != nil {
			return err
		}
	}
	for _, guid := range orgs {
		if _, err := store.Orgs.Get(c.Tx, guid); err != nil {
			return control.Unprocessable(err, "Could not find VCAP::CloudController::Organization with guid: %s", guid)
		}
		if err := store.ServicePlanVisibilities.Insert(c.Tx, &cf.ServicePlanVisibility{PlanGUID: p.GUID, OrgGUID: guid}); err != nil {
			return err
		}
	}
	return nil
}

// VisibilityEvent records an event of the orgs that see a plan.
func VisibilityEvent(c *control.Session, kind audit.Type, p *cf.ServicePlan, org string, request audit.Data) error {
	return c.Audit(kind, audit.Target{Type: "service_plan_visibility", GUID: p.GUID, Place: authz.Place{OrgGUID: org}}, audit.Data{"request": request})
}
