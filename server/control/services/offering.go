package services

import (
	"cupola/server/control"
	"cupola/server/control/audit"
	"cupola/store"
	"cupola/store/cf"
)

// FindOffering is an offering, if the actor sees it and satisfies the rule where
// its broker is.
func FindOffering(c *control.Session, guid string) (*cf.ServiceOffering, error) {
	o, err := store.ServiceOfferings.Visible(c.Tx, guid, c.Scope)
	if err != nil {
		return nil, err
	}
	b, err := store.ServiceBrokers.Get(c.Tx, o.BrokerGUID)
	if err != nil {
		return nil, err
	}
	return o, permitBroker(c, b)
}

// FindPlan is FindOffering for a plan.
func FindPlan(c *control.Session, guid string) (*cf.ServicePlan, error) {
	p, err := store.ServicePlans.Visible(c.Tx, guid, c.Scope)
	if err != nil {
		return nil, err
	}
	o, err := OfferFor(c, p)
	if err != nil {
		return nil, err
	}
	return p, permitBroker(c, o.Broker)
}

// instancesOf counts the instances of plans.
func instancesOf(c *control.Session, plans ...*cf.ServicePlan) (int, error) {
	return store.ServiceInstances.Count(c.Tx, store.Query{Where: map[string][]string{
		"service_plan_guids": control.GUIDs(plans, func(p *cf.ServicePlan) string { return p.GUID })}})
}

// RemoveOffering deletes an offering that has no plans.
func RemoveOffering(c *control.Session, o *cf.ServiceOffering) error {
	plans, err := store.ServicePlans.By(c.Tx, "service_offering_guids", o.GUID)
	if err != nil {
		return err
	}
	if len(plans) > 0 {
		return cf.Unprocessable("Please delete the service_plans associations for your services.")
	}
	return deleteOffering(c, o, audit.Data{})
}

// PurgeOffering deletes an offering with its plans and their instances; the
// broker is not asked.
func PurgeOffering(c *control.Session, o *cf.ServiceOffering) error {
	plans, err := store.ServicePlans.By(c.Tx, "service_offering_guids", o.GUID)
	if err != nil {
		return err
	}
	instances, err := store.ServiceInstances.By(c.Tx, "service_plan_guids", control.GUIDs(plans, func(p *cf.ServicePlan) string { return p.GUID })...)
	if err != nil {
		return err
	}
	for _, i := range instances {
		if err := Remove(c, i, audit.ServiceInstancePurge); err != nil {
			return err
		}
	}
	return deleteOffering(c, o, audit.Data{"purge": true})
}

func deleteOffering(c *control.Session, o *cf.ServiceOffering, request audit.Data) error {
	if err := store.ServiceOfferings.Delete(c.Tx, o.GUID); err != nil {
		return err
	}
	return c.Audit(audit.ServiceOfferingDelete, audit.Target{Type: "service", GUID: o.GUID, Name: o.Name}, audit.Data{"request": request})
}

// RemovePlan deletes a plan that has no instances.
func RemovePlan(c *control.Session, p *cf.ServicePlan) error {
	n, err := instancesOf(c, p)
	if err != nil {
		return err
	}
	if n > 0 {
		return cf.Unprocessable("Please delete the service_instances associations for your service_plans.")
	}
	if err := store.ServicePlans.Delete(c.Tx, p.GUID); err != nil {
		return err
	}
	return c.Audit(audit.ServicePlanDelete, audit.Target{Type: "service_plan", GUID: p.GUID, Name: p.Name}, audit.Data{"request": audit.Data{}})
}
