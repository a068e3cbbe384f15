package services

import (
	"cupola/server/control"
	"cupola/server/control/audit"
	"cupola/store"
	"cupola/store/cf"
)

// FindBroker is a broker, if the actor sees it and satisfies the rule where it is.
func FindBroker(c *control.Session, guid string) (*cf.ServiceBroker, error) {
	b, err := store.ServiceBrokers.Get(c.Tx, guid)
	if err != nil {
		return nil, err
	}
	hidden := c.Scope != nil
	if b.SpaceGUID != "" {
		_, err := store.Spaces.Visible(c.Tx, b.SpaceGUID, c.Scope)
		hidden = err != nil
	}
	if hidden {
		return nil, cf.Errorf(cf.ResourceNotFound, "Service broker not found")
	}
	return b, permitBroker(c, b)
}

// permitBroker is Permit where a broker is: in its space, or nowhere.
func permitBroker(c *control.Session, b *cf.ServiceBroker) error {
	if b.SpaceGUID == "" {
		return c.PermitAdmin()
	}
	_, err := c.InSpace(b.SpaceGUID)
	return err
}

// Register adds a service broker, with the job that reads its catalog.
func Register(c *control.Session, req BrokerChange) (*cf.Job, error) {
	if err := control.Invalid(req.missing()); err != nil {
		return nil, err
	}
	l, _ := req.login() // was found right
	b := &cf.ServiceBroker{Name: req.Name.V, URL: req.URL.V, Username: l.username, Password: l.password, SpaceGUID: req.space(), State: cf.BrokerSynchronizing}
	if err := mayRegister(c, b); err != nil {
		return nil, err
	}
	if err := req.Metadata.Apply(&b.Metadata); err != nil {
		return nil, err
	}
	if err := store.ServiceBrokers.Insert(c.Tx, b); err != nil {
		return nil, brokerTaken(err)
	}
	if err := brokerEvent(c, audit.ServiceBrokerCreate, b, req.audited()); err != nil {
		return nil, err
	}
	return Ask(c, cf.JobSyncBroker, brokers, b.GUID, cf.ServiceWork{})
}

// brokers is what jobs of service brokers call them.
const brokers = "service_brokers"

func brokerTaken(err error) error {
	if store.IsTaken(err) {
		return cf.Unprocessable("Name must be unique")
	}
	return err
}

// mayRegister checks the rule for a broker of the whole platform, or of a space
// that the actor has to see.
func mayRegister(c *control.Session, b *cf.ServiceBroker) error {
	if b.SpaceGUID == "" {
		return c.PermitAdmin()
	}
	if _, err := store.Spaces.Visible(c.Tx, b.SpaceGUID, c.Scope); err != nil {
		return control.Unprocessable(err, "Invalid space. Ensure that the space exists and you have access to it.")
	}
	if err := c.Feature("space_scoped_private_broker_creation"); err != nil {
		return err
	}
	return permitBroker(c, b)
}

// UpdateBroker changes a service broker: labels and annotations at once, all else
// by the job that is returned, which reads the catalog first.
func UpdateBroker(c *control.Session, b *cf.ServiceBroker, req BrokerChange) (*cf.Job, error) {
	labelled := b.Metadata
	if err := req.Metadata.Apply(&labelled); err != nil {
		return nil, err
	}
	if !req.Name.Set && !req.URL.Set && !req.Authentication.Set {
		b.Metadata = labelled
		return nil, store.ServiceBrokers.Update(c.Tx, b)
	}
	update, err := brokerUpdate(c, b, req)
	if err != nil {
		return nil, err
	}
	if req.Metadata != nil {
		update.Metadata = &labelled
	}
	b.State = cf.BrokerSynchronizing
	if err := store.ServiceBrokers.Update(c.Tx, b); err != nil {
		return nil, err
	}
	if err := brokerEvent(c, audit.ServiceBrokerUpdate, b, req.audited()); err != nil {
		return nil, err
	}
	return addJob(c, cf.JobUpdateBroker, brokers, b.GUID, update)
}

// brokerUpdate is what a request changes of a broker, if it can change now.
func brokerUpdate(c *control.Session, b *cf.ServiceBroker, req BrokerChange) (update cf.BrokerUpdate, err error) {
	update = cf.BrokerUpdate{Before: b.State, Actor: c.Who()}
	if req.Name.Set && !req.Name.Null {
		update.Name = &req.Name.V
		same, err := store.ServiceBrokers.By(c.Tx, "names", req.Name.V)
		if err != nil {
			return update, err
		}
		if len(same) > 0 && same[0].GUID != b.GUID {
			return update, cf.Unprocessable("Name must be unique")
		}
	}
	if b.Busy() {
		return update, cf.Unprocessable("Cannot update a broker when other operation is already in progress")
	}
	if req.URL.Set && !req.URL.Null {
		update.URL = &req.URL.V
	}
	if req.Authentication.Set && !req.Authentication.Null {
		l, _ := req.login() // was found right
		update.Username, update.Password = &l.username, &l.password
	}
	return update, nil
}

// RemoveBroker deletes a broker, of whose plans there are no instances, with what
// it offers.
func RemoveBroker(c *control.Session, b *cf.ServiceBroker) error {
	plans, err := store.ServicePlans.By(c.Tx, "service_broker_guids", b.GUID)
	if err != nil {
		return err
	}
	n, err := instancesOf(c, plans...)
	if err != nil {
		return err
	}
	if n > 0 {
		return cf.Errorf(cf.BrokerNotRemovable, "Can not remove brokers that have associated service instances: %s", b.Name)
	}
	offerings, err := store.ServiceOfferings.By(c.Tx, "service_broker_guids", b.GUID)
	if err != nil {
		return err
	}
	if err := store.ServiceBrokers.Delete(c.Tx, b.GUID); err != nil {
		return err
	}
	if err := offersRemoved(c, b, offerings, plans); err != nil {
		return err
	}
	return brokerEvent(c, audit.ServiceBrokerDelete, b, audit.Data{"request": audit.Data{}})
}

// offersRemoved records that the broker's offerings and plans are deleted with it: the
// broker is the actor (CC: ServiceBrokerRemover).
func offersRemoved(c *control.Session, b *cf.ServiceBroker, offerings []*cf.ServiceOffering, plans []*cf.ServicePlan) error {
	by := cf.Actor{GUID: b.GUID, Type: "service_broker", Name: b.Name}
	for _, o := range offerings {
		for _, p := range plans {
			if p.OfferingGUID != o.GUID {
				continue
			}
			if err := audit.Write(c.Tx, by, audit.ServicePlanDelete, audit.Target{Type: "service_plan", GUID: p.GUID, Name: p.Name}, nil); err != nil {
				return err
			}
		}
		if err := audit.Write(c.Tx, by, audit.ServiceOfferingDelete, audit.Target{Type: "service", GUID: o.GUID, Name: o.Name}, nil); err != nil {
			return err
		}
	}
	return nil
}

func brokerEvent(c *control.Session, kind audit.Type, b *cf.ServiceBroker, data audit.Data) error {
	return c.Audit(kind, audit.Target{Type: "service_broker", GUID: b.GUID, Name: b.Name}, data)
}
