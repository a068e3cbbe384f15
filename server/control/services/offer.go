package services

import (
	"slices"

	"cupola/server/control"
	"cupola/server/control/quota"
	"cupola/store"
	"cupola/store/cf"
)

// VersionOf is the version of what new instances of a plan run; "" for none.
func VersionOf(p *cf.ServicePlan) string {
	if p.MaintenanceInfo == nil {
		return ""
	}
	return p.MaintenanceInfo.Version
}

// Offer is what a managed service instance is an instance of.
type Offer struct {
	Plan     *cf.ServicePlan
	Offering *cf.ServiceOffering
	Broker   *cf.ServiceBroker
}

// offerOf is what an instance is an instance of.
func offerOf(c *control.Session, i *cf.ServiceInstance) (o Offer, err error) {
	if o.Plan, err = store.ServicePlans.Get(c.Tx, i.PlanGUID); err != nil {
		return o, err
	}
	return OfferFor(c, o.Plan)
}

// OfferFor is a plan with its offering and broker.
func OfferFor(c *control.Session, plan *cf.ServicePlan) (o Offer, err error) {
	o.Plan = plan
	if o.Offering, err = store.ServiceOfferings.Get(c.Tx, plan.OfferingGUID); err != nil {
		return o, err
	}
	o.Broker, err = store.ServiceBrokers.Get(c.Tx, o.Offering.BrokerGUID)
	return o, err
}

// planFor is a plan that a request names for an instance in a space.
func planFor(c *control.Session, guid string, space *cf.Space) (*cf.ServicePlan, error) {
	plan, err := store.ServicePlans.Visible(c.Tx, guid, c.Scope)
	if err != nil {
		return nil, control.Unprocessable(err, "Invalid service plan. Ensure that the service plan exists, is available, and you have access to it.")
	}
	if !plan.Active {
		return nil, cf.Unprocessable("Invalid service plan. The service plan '%s' with guid '%s' has been removed from the service broker's catalog. "+
			"It is not possible to create new service instances using this plan.", plan.Name, plan.GUID)
	}
	seen, err := planSeenIn(c, plan, space)
	if err == nil && !seen {
		err = cf.Unprocessable("Invalid service plan. This could be due to a space-scoped broker which is offering the service plan '%s' with guid '%s' in another space "+
			"or that the plan is not enabled in this organization. Ensure that the service plan is visible in your current space '%s' with guid '%s'.",
			plan.Name, plan.GUID, space.Name, space.GUID)
	}
	return plan, err
}

func planSeenIn(c *control.Session, plan *cf.ServicePlan, space *cf.Space) (bool, error) {
	n, err := store.ServicePlans.Count(c.Tx, store.Query{Where: map[string][]string{"guids": {plan.GUID}, "space_guids": {space.GUID}}})
	return n > 0, err
}

// paidAllowed refuses a plan that costs where the quota of the space or of its
// org does.
func paidAllowed(c *control.Session, plan *cf.ServicePlan, space *cf.Space) error {
	org, err := store.Orgs.Get(c.Tx, space.OrgGUID)
	if err != nil || plan.Free {
		return err
	}
	list, err := quota.Budgets(c.Tx, org, space)
	for _, b := range slices.Backward(list) {
		switch {
		case b.Limits.PaidServices:
		case b.OfSpace():
			return cf.Unprocessable("The service instance cannot be created because paid service plans are not allowed for your space.")
		default:
			return cf.Unprocessable("The service instance cannot be created because paid service plans are not allowed.")
		}
	}
	return err
}
