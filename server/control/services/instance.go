package services

import (
	"slices"
	"strings"

	"cupola/server/authz"
	"cupola/server/control"
	"cupola/server/control/access"
	"cupola/server/control/audit"
	"cupola/store"
	"cupola/store/cf"
)

// instances is what jobs of service instances call them.
const instances = "service_instances"

// FindInstance is a service instance, if the actor sees it and satisfies the rule
// in its own space.
func FindInstance(c *control.Session, guid string) (*cf.ServiceInstance, error) {
	i, err := store.ServiceInstances.Visible(c.Tx, guid, c.Scope)
	if err != nil {
		return nil, err
	}
	_, err = c.InSpace(i.SpaceGUID)
	return i, err
}

// save inserts or updates a service instance, which must not be
// called as another of its space is, or one that is shared with it.
func save(c *control.Session, i *cf.ServiceInstance, write func(*store.Tx, *cf.ServiceInstance) error) error {
	if err := faults(i); err != nil {
		return err
	}
	taken, err := otherNamed(c, i, "shared_space_guids")
	if err == nil && !taken {
		err = write(c.Tx, i)
	}
	if taken || store.IsTaken(err) {
		return cf.Unprocessable("The service instance name is taken: %s.", i.Name)
	}
	return err
}

// otherNamed reports whether another instance is called like this one, of those
// whose filter has the space.
func otherNamed(c *control.Session, i *cf.ServiceInstance, filter string) (bool, error) {
	named, err := store.ServiceInstances.Where(c.Tx, map[string][]string{"names": {i.Name}, filter: {i.SpaceGUID}})
	return slices.ContainsFunc(named, func(o *cf.ServiceInstance) bool { return o.GUID != i.GUID }), err
}

// faults says in Cloud Controller's words what of a service instance is
// too long.
func faults(i *cf.ServiceInstance) error {
	const maxName, maxURL, maxTags = 255, 10_000, 2048
	return control.Invalid(control.Must(i.Name != "", "name presence", len([]rune(i.Name)) <= maxName, "name max_length",
		len(i.SyslogDrainURL) <= maxURL, "syslog_drain_url max_length", len(strings.Join(i.Tags, "")) <= maxTags, "tags too_long"))
}

// Changing reports whether an operation forbids to delete its instance:
// one that a broker takes its time to make can be deleted meanwhile.
func Changing(op cf.LastOperation) bool {
	return op.Is(cf.OpCreate, cf.OpInitial) || op.Type != cf.OpCreate && op.InProgress()
}

// busy is the error of what cannot be done while an instance changes.
func busy() error {
	return cf.Unprocessable("There is an operation in progress for the service instance.")
}

// inProgress is busy as some endpoints of Cloud Controller's say it.
func inProgress(i *cf.ServiceInstance) error {
	return cf.Errorf(cf.ServiceBusy, "An operation for service instance %s is in progress.", i.Name)
}

// notFound is the error of an instance that could not be made.
func notFound(i *cf.ServiceInstance) error {
	return cf.Errorf(cf.ServiceNotFound, "The service instance could not be found: %s", i.Name)
}

// DeleteInstance deletes a service instance with all that is bound to it, a
// managed one by the job that is returned.
func DeleteInstance(c *control.Session, guid string) (*cf.Job, error) {
	i, err := FindInstance(c, guid)
	switch {
	case err != nil:
		return nil, err
	case Changing(i.LastOperation):
		return nil, busy()
	case i.Type == cf.Managed:
		return BeginDelete(c, i)
	}
	return nil, Remove(c, i, audit.UserProvidedDelete)
}

// BeginDelete adds the job that has a broker delete a service instance.
func BeginDelete(c *control.Session, i *cf.ServiceInstance) (*cf.Job, error) {
	return askInstance(c, i, cf.OpDelete, cf.JobDeleteInstance, cf.ServiceWork{})
}

// askInstance begins an operation of a service instance, and adds its job.
func askInstance(c *control.Session, i *cf.ServiceInstance, kind, operation string, work cf.ServiceWork) (*cf.Job, error) {
	i.LastOperation = cf.Begin(kind, cf.OpInProgress, c.Tx.Now)
	if err := store.ServiceInstances.Update(c.Tx, i); err != nil {
		return nil, err
	}
	return Ask(c, operation, instances, i.GUID, work)
}

// PurgeInstance forgets a service instance and what is bound to it, without a
// word to the broker.
func PurgeInstance(c *control.Session, i *cf.ServiceInstance) error {
	if i.Type == cf.Managed {
		if err := mayPurge(c, i); err != nil {
			return err
		}
	}
	return Remove(c, i, audit.ServiceInstancePurge)
}

// mayPurge refuses to forget what a broker has, unless the actor is an admin, or
// a developer of the space that the broker is of.
func mayPurge(c *control.Session, i *cf.ServiceInstance) error {
	if c.Actor.Admin {
		return nil
	}
	o, err := offerOf(c, i)
	if err != nil {
		return err
	}
	if o.Broker.SpaceGUID == "" {
		return access.NotAuthorized()
	}
	space, err := store.Spaces.Get(c.Tx, o.Broker.SpaceGUID)
	if err == nil && !c.Actor.May(authz.SpaceDeveloper, access.At(space)) {
		err = access.NotAuthorized()
	}
	return err
}

// Remove deletes a service instance with all that is bound to
// it, and records it under the given type.
func Remove(c *control.Session, i *cf.ServiceInstance, event audit.Type) error {
	err := control.EachOf(c, store.RouteBindings, "service_instance_guids", i.GUID, func(b *cf.RouteBinding) error { return RemoveRouteBinding(c, b, i) })
	if err != nil {
		return err
	}
	err = control.EachOf(c, store.ServiceBindings.Table, "service_instance_guids", i.GUID, func(b *cf.ServiceBinding) error { return RemoveBinding(c, b, i) })
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
	return instanceEvent(c, event, i, nil)
}

// instanceEvent records an event of a service instance.
func instanceEvent(c *control.Session, kind audit.Type, i *cf.ServiceInstance, request audit.Data) error {
	what := "service_instance"
	if i.Type == cf.UserProvided && kind != audit.ServiceInstancePurge {
		what = "user_provided_service_instance"
	}
	return event(c, kind, i.SpaceGUID, audit.Target{Type: what, GUID: i.GUID, Name: i.Name}, audit.Data{"request": request})
}

// event records an event of what is in a space.
func event(c *control.Session, kind audit.Type, spaceGUID string, t audit.Target, data audit.Data) error {
	space, err := store.Spaces.Get(c.Tx, spaceGUID)
	if err != nil {
		return err
	}
	t.Place = access.At(space)
	return c.Audit(kind, t, data)
}
