package services

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"cupola/server/authz"
	"cupola/server/control"
	"cupola/server/control/access"
	"cupola/server/control/audit"
	"cupola/store"
	"cupola/store/cf"
)

// Save inserts or updates a service instance, which must not be
// called as another of its space is, or one that is shared with it.
func Save(c *control.Session, i *cf.ServiceInstance, save func(*store.Tx, *cf.ServiceInstance) error) error {
	if err := Faults(i); err != nil {
		return err
	}
	named, _, err := store.ServiceInstances.List(c.Tx, store.Query{Where: map[string][]string{"names": {i.Name}, "shared_space_guids": {i.SpaceGUID}}})
	if err != nil {
		return err
	}
	if len(control.Without(named, func(o *cf.ServiceInstance) bool { return o.GUID == i.GUID })) > 0 {
		return nameTaken(i.Name)
	}
	err = save(c.Tx, i)
	if store.IsTaken(err) {
		return nameTaken(i.Name)
	}
	return err
}

func nameTaken(name string) error {
	return cf.Unprocessable("The service instance name is taken: %s.", name)
}

// Faults says in Cloud Controller's words what of a service instance is
// too long.
func Faults(i *cf.ServiceInstance) error {
	const maxName, maxURL = 255, 10_000
	return control.Invalid(control.Must(i.Name != "", "name presence", len([]rune(i.Name)) <= maxName, "name max_length",
		len(i.SyslogDrainURL) <= maxURL, "syslog_drain_url max_length", tagsFit(i.Tags), "tags too_long"))
}

// Changing tells whether an operation forbids to delete its instance:
// one that a broker takes its time to make can be deleted meanwhile.
func Changing(op cf.LastOperation) bool {
	return op.Is(cf.OpCreate, cf.OpInitial) || op.Type != cf.OpCreate && op.InProgress()
}

// Busy is the error of what cannot be done while an instance changes.
func Busy() error {
	return cf.Unprocessable("There is an operation in progress for the service instance.")
}

// MayPurge tells whether the actor may have the platform forget what a broker
// has: an admin, or a developer of the space that the broker is of.
func MayPurge(c *control.Session, i *cf.ServiceInstance) (bool, error) {
	if c.Actor.Admin {
		return true, nil
	}
	o, err := OfferOf(c, i)
	if err != nil || o.Broker.SpaceGUID == "" {
		return false, err
	}
	space, err := store.Spaces.Get(c.Tx, o.Broker.SpaceGUID)
	return err == nil && c.Actor.May(authz.SpaceDeveloper, access.At(space)), err
}

// Remove deletes a service instance with all that is bound to
// it, and records it under the given type.
func Remove(c *control.Session, i *cf.ServiceInstance, event audit.Type) error {
	err := control.EachOf(c, store.RouteBindings, "service_instance_guids", i.GUID, func(b *cf.RouteBinding) error { return RemoveRouteBinding(c, b, i) })
	if err != nil {
		return err
	}
	err = control.EachOf(c, store.ServiceBindings, "service_instance_guids", i.GUID, func(b *cf.ServiceBinding) error { return RemoveBinding(c, b, i) })
	if err != nil {
		return err
	}
	for _, space := range slices.Clone(i.SharedSpaces) {
		if err := Unshare(c, i, space); err != nil {
			return err
		}
	}
	if err := store.ServiceInstances.Delete(c.Tx, i.GUID); err != nil {
		return err
	}
	return Event(c, event, i, nil)
}

// Event records an event of a service instance.
func Event(c *control.Session, kind audit.Type, i *cf.ServiceInstance, request audit.Data) error {
	space, err := store.Spaces.Get(c.Tx, i.SpaceGUID)
	if err != nil {
		return err
	}
	what := "service_instance"
	if i.Type == cf.UserProvided && kind != audit.ServiceInstancePurge {
		what = "user_provided_service_instance"
	}
	return c.Audit(kind, audit.Target{Type: what, GUID: i.GUID, Name: i.Name, Place: access.At(space)}, audit.Data{"request": request})
}

// ReplaceFailed makes room for a service instance where one of the same name
// could not be made.
func ReplaceFailed(c *control.Session, i *cf.ServiceInstance) error {
	old, err := store.ServiceInstances.First(c.Tx, store.Query{Where: map[string][]string{"names": {i.Name}, "owner_space_guids": {i.SpaceGUID}}})
	if store.IsNotFound(err) {
		return nil
	}
	if err != nil || !old.LastOperation.Is(cf.OpCreate, cf.OpFailed) {
		return err
	}
	if err := Abandon(c, old, ""); err != nil {
		return err
	}
	return store.ServiceInstances.Delete(c.Tx, old.GUID)
}

// Abandon has the broker forget an instance, or a binding of it, that it may
// have made though it was told to the platform as failed.
func Abandon(c *control.Session, i *cf.ServiceInstance, binding string) error {
	o, err := OfferOf(c, i)
	if err != nil {
		return err
	}
	return store.BrokerOperations.Insert(c.Tx, &cf.BrokerOperation{Phase: cf.PhaseSend, DueAt: c.Tx.Now, Orphan: &cf.Orphan{BrokerGUID: o.Broker.GUID,
		OfferingID: o.Offering.CatalogID, PlanID: o.Plan.CatalogID, InstanceGUID: i.GUID, BindingGUID: binding}})
}

// NewJob is a job for which a broker will be asked.
func NewJob(c *control.Session, operation, resourceType, guid string, work cf.ServiceWork) (*cf.Job, error) {
	work.Actor = c.Who()
	input, err := json.Marshal(work)
	return &cf.Job{Operation: operation, ResourceType: resourceType, ResourceGUID: guid, State: cf.JobProcessing, Input: string(input)}, err
}

// BeginDelete gives the job that has a broker delete a service instance.
func BeginDelete(c *control.Session, i *cf.ServiceInstance) (*cf.Job, error) {
	i.LastOperation = cf.Begin(cf.OpDelete, cf.OpInProgress, c.Tx.Now)
	if err := store.ServiceInstances.Update(c.Tx, i); err != nil {
		return nil, err
	}
	return NewJob(c, cf.JobDeleteInstance, "service_instances", i.GUID, cf.ServiceWork{})
}

// RouteServiceFault refuses a route service's URL that names no host.
func RouteServiceFault(raw string) error {
	if raw == "" {
		return nil
	}
	if u, err := url.Parse(raw); err != nil || u.Hostname() == "" || strings.HasPrefix(u.Hostname(), ".") {
		return cf.Unprocessable("service_instance route_service_url_invalid")
	}
	return nil
}

// PassOn gives what is bound to a user-provided service instance what the
// instance says now. What an app could not start with is refused.
func PassOn(c *control.Session, i *cf.ServiceInstance) error {
	if err := c.Tx.PassOnCredentials(i.GUID, i.Credentials, drainOf(i)); err != nil {
		return err
	}
	if err := boundFit(c, i); err != nil {
		return err
	}
	routes, err := store.RouteBindings.By(c.Tx, "service_instance_guids", i.GUID)
	if err != nil || i.RouteServiceURL == "" {
		return err
	}
	for _, b := range routes {
		b.RouteServiceURL = i.RouteServiceURL
		if err := store.RouteBindings.Update(c.Tx, b); err != nil {
			return err
		}
	}
	return nil
}

// drainOf is the drain as bindings have it: commas would separate it from
// others.
func drainOf(i *cf.ServiceInstance) string { return strings.ReplaceAll(i.SyslogDrainURL, ",", "%2c") }

// PurgePlans forgets the instances of plans, without a word to their broker.
func PurgePlans(c *control.Session, plans []*cf.ServicePlan) error {
	instances, err := store.ServiceInstances.By(c.Tx, "service_plan_guids", control.GUIDs(plans, func(p *cf.ServicePlan) string { return p.GUID })...)
	if err != nil {
		return err
	}
	for _, i := range instances {
		if err := Remove(c, i, audit.ServiceInstancePurge); err != nil {
			return err
		}
	}
	return nil
}

// Done is an operation that succeeds where it begins, as it does with what is
// user-provided.
func Done(c *control.Session, kind, description string) cf.LastOperation {
	o := cf.Begin(kind, cf.OpSucceeded, c.Tx.Now)
	o.Description = description
	return o
}

// OperationSucceeded describes an operation on what is user-provided.
const OperationSucceeded = "Operation succeeded"

// maxTags bounds the length of all tags together, as Cloud Controller does.
const maxTags = 2048

func tagsFit(tags []string) bool { return len(strings.Join(tags, "")) <= maxTags }
