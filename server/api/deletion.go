package api

import (
	"strings"
	"time"

	"cupola/store"
	"cupola/store/cf"
)

// The operations of jobs that delete what may have services of brokers in it.
const (
	jobDeleteApp   = "app.delete"
	jobDeleteSpace = "space.delete"
	jobDeleteOrg   = "organization.delete"
)

// deletion is the deletion of apps and service instances that waits for brokers
// to delete what they have for them.
type deletion struct {
	since  time.Time
	left   int      // things that a broker still has
	failed []string // why some could not be deleted
}

// serviceless has brokers delete what apps are bound to of theirs.
func (d *deletion) serviceless(c *call, apps []*cf.App) error {
	rows, err := store.ServiceBindings.By(c.Tx, "app_guids", guidsOf(apps, func(a *cf.App) string { return a.GUID })...)
	if err != nil {
		return err
	}
	for _, b := range rows {
		i, err := store.ServiceInstances.Get(c.Tx, b.InstanceGUID)
		if err != nil {
			return err
		}
		if i.Type != cf.Managed {
			continue
		}
		if err := d.binding(c, b, i); err != nil {
			return err
		}
	}
	return nil
}

// binding has the broker delete a binding once it can, and looks what has
// become of it.
func (d *deletion) binding(c *call, b *cf.ServiceBinding, i *cf.ServiceInstance) error {
	op := b.LastOperation
	switch {
	case op.Is(cf.OpCreate, cf.OpFailed):
		return c.replaceBinding(b, i)
	case d.broken(op):
		d.failed = append(d.failed, op.Description)
		return nil
	}
	d.left++
	if bindingIdle(op, i) != nil {
		return nil
	}
	j, err := c.unbind(b)
	if err != nil {
		return err
	}
	return store.Jobs.Insert(c.Tx, j)
}

// broken tells whether it failed since the deletion began.
func (d *deletion) broken(op cf.LastOperation) bool {
	return op.Is(cf.OpDelete, cf.OpFailed) && !op.UpdatedAt.Before(d.since)
}

// instance has the broker delete a service instance once it can, and looks what
// has become of it.
func (d *deletion) instance(c *call, i *cf.ServiceInstance) error {
	op := i.LastOperation
	switch {
	case i.Type != cf.Managed:
		return nil
	case d.broken(op):
		d.failed = append(d.failed, op.Description)
		return nil
	}
	d.left++
	if instanceChanging(op) {
		return nil
	}
	j, err := c.beginDelete(i)
	if err != nil {
		return err
	}
	return store.Jobs.Insert(c.Tx, j)
}

// space has brokers delete what they have for a space.
func (d *deletion) space(c *call, s *cf.Space) error {
	instances, err := store.ServiceInstances.By(c.Tx, "owner_space_guids", s.GUID)
	if err != nil {
		return err
	}
	for _, i := range instances {
		if err := d.instance(c, i); err != nil {
			return err
		}
	}
	apps, err := store.Apps.By(c.Tx, "space_guids", s.GUID)
	if err != nil {
		return err
	}
	return d.serviceless(c, apps)
}

// delete deletes what a job is to, if no broker has anything for it, and tells
// whether it is gone.
func (c *call) delete(j *cf.Job, d *deletion) (done bool, err error) {
	switch j.Operation {
	case jobDeleteApp:
		app, err := store.Apps.Get(c.Tx, j.ResourceGUID)
		if err != nil {
			return gone(err)
		}
		return c.deleteIf(d, d.serviceless(c, []*cf.App{app}), func() error { return removeApp(c, app) })
	case jobDeleteSpace:
		space, err := store.Spaces.Get(c.Tx, j.ResourceGUID)
		if err != nil {
			return gone(err)
		}
		return c.deleteIf(d, d.space(c, space), func() error { return removeSpace(c, space) })
	}
	org, err := store.Orgs.Get(c.Tx, j.ResourceGUID)
	if err != nil {
		return gone(err)
	}
	return c.deleteIf(d, d.org(c, org), func() error { return removeOrg(c, org) })
}

// gone tells that what is not found was deleted meanwhile.
func gone(err error) (bool, error) {
	if store.IsNotFound(err) {
		return true, nil
	}
	return false, err
}

func (d *deletion) org(c *call, o *cf.Org) error {
	spaces, err := store.Spaces.By(c.Tx, "organization_guids", o.GUID)
	if err != nil {
		return err
	}
	for _, s := range spaces {
		if err := d.space(c, s); err != nil {
			return err
		}
	}
	return nil
}

// deleteIf removes what has nothing of brokers left.
func (c *call) deleteIf(d *deletion, err error, remove func() error) (bool, error) {
	if err != nil || d.left+len(d.failed) > 0 {
		return false, err
	}
	return true, remove()
}

// fault is why a deletion failed, as its job shows it.
func (d *deletion) fault(c *call, j *cf.Job) *cf.Error {
	what := "\t" + strings.Join(d.failed, "\n\n\t")
	switch j.Operation {
	case jobDeleteSpace:
		if s, err := store.Spaces.Get(c.Tx, j.ResourceGUID); err == nil {
			return cf.Errorf(cf.SpaceDeletionFailed, "Deletion of space %s failed because one or more resources within could not be deleted.\n\n%s", s.Name, what)
		}
	case jobDeleteOrg:
		if o, err := store.Orgs.Get(c.Tx, j.ResourceGUID); err == nil {
			return cf.Errorf(cf.OrgDeletionFailed, "Deletion of organization %s failed because one or more resources within could not be deleted.\n\n%s", o.Name, what)
		}
	}
	return cf.Unprocessable("%s", strings.Join(d.failed, "\n"))
}

// removeServices deletes the bindings of an app, which are user-provided by
// now.
func removeServices(c *call, app *cf.App) error {
	rows, err := store.ServiceBindings.By(c.Tx, "app_guids", app.GUID)
	if err != nil {
		return err
	}
	for _, b := range rows {
		i, err := store.ServiceInstances.Get(c.Tx, b.InstanceGUID)
		if err != nil {
			return err
		}
		if err := c.removeBinding(b, i); err != nil {
			return err
		}
	}
	return nil
}

// removeServicesOf deletes the service instances of a space, which are
// user-provided by now, and takes out of it what is shared with it.
func removeServicesOf(c *call, s *cf.Space) error {
	own, err := store.ServiceInstances.By(c.Tx, "owner_space_guids", s.GUID)
	if err != nil {
		return err
	}
	for _, i := range own {
		if err := removeServiceInstance(c, i, "audit.user_provided_service_instance.delete"); err != nil {
			return err
		}
	}
	shared, err := store.ServiceInstances.By(c.Tx, "shared_space_guids", s.GUID)
	if err != nil {
		return err
	}
	for _, i := range shared {
		if err := c.unshareService(i, s.GUID); err != nil {
			return err
		}
	}
	return nil
}
