package services

import (
	"cupola/server/control"
	"cupola/server/control/quota"
	"cupola/store"
	"cupola/store/cf"
)

// InsertManaged adds a managed service instance, which a job has a broker make.
func InsertManaged(c *control.Session, i *cf.ServiceInstance, planGUID string) error {
	space, err := store.Spaces.Get(c.Tx, i.SpaceGUID)
	if err != nil {
		return err
	}
	plan, err := PlanFor(c, planGUID, space)
	if err != nil {
		return err
	}
	o, err := OfferFor(c, plan)
	if err != nil {
		return err
	}
	if o.Broker.Busy() {
		return cf.Unprocessable("The service instance cannot be created because there is an operation in progress for the service broker.")
	}
	if err := PaidAllowed(c, plan, space); err != nil {
		return err
	}
	if err := ReplaceFailed(c, i); err != nil {
		return err
	}
	i.PlanGUID, i.MaintenanceVersion = plan.GUID, VersionOf(plan)
	i.LastOperation = cf.Begin(cf.OpCreate, cf.OpInitial, c.Tx.Now)
	return quota.Within(c, i.SpaceGUID, quota.Services, func() error { return Save(c, i, store.ServiceInstances.Insert) })
}
