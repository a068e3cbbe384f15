package api

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"cupola/server/control"
	"cupola/server/control/audit"
	"cupola/server/control/routes"
	"cupola/server/control/services"
	"cupola/store"
	"cupola/store/cf"
)

// The operations of jobs that delete what can be much, or have services of
// brokers in it.
const (
	jobDeleteApp      = "app.delete"
	jobDeleteSpace    = "space.delete"
	jobDeleteOrg      = "organization.delete"
	jobDeleteDomain   = "domain.delete"
	jobDeleteUnmapped = "space.delete_unmapped_routes"
)

const (
	// removedRows is how many rows of an app, such as its tasks, go in one
	// transaction.
	removedRows = 200
)

// deletion is the deletion of apps and service instances that waits for brokers
// to delete what they have for them.
type deletion struct {
	since  time.Time
	left   int      // things that a broker still has
	failed []string // why some could not be deleted
	more   bool     // there is more to do than the transaction did
}

// app asks brokers to delete the bindings of an app.
func (d *deletion) app(c *call, a *cf.App) error {
	return d.unbindManaged(c, "app_guids", a.GUID)
}

// unbindManaged asks brokers to delete the managed bindings that a filter
// accepts.
func (d *deletion) unbindManaged(c *call, filter, value string) error {
	rows, err := store.ServiceBindings.Where(c.Tx, map[string][]string{filter: {value}, "instance_types": {cf.Managed}})
	if err != nil || len(rows) == 0 {
		return err
	}
	list, err := store.ServiceInstances.By(c.Tx, "guids", control.GUIDs(rows, func(b *cf.ServiceBinding) string { return b.InstanceGUID })...)
	if err != nil {
		return err
	}
	instances := map[string]*cf.ServiceInstance{}
	for _, i := range list {
		instances[i.GUID] = i
	}
	for _, b := range rows {
		if d.paused(c) {
			return nil
		}
		if err := d.binding(c, b, instances[b.InstanceGUID]); err != nil {
			return err
		}
	}
	return nil
}

// paused reports whether the transaction has asked for enough.
func (d *deletion) paused(c *call) bool {
	d.more = d.more || c.Paused()
	return d.more
}

// binding has the broker delete a binding once it can, and looks what has
// become of it.
func (d *deletion) binding(c *call, b *cf.ServiceBinding, i *cf.ServiceInstance) error {
	op := b.LastOperation
	switch {
	case op.Is(cf.OpCreate, cf.OpFailed):
		return services.ReplaceBinding(c.Session, b, i)
	case d.broken(op):
		d.failed = append(d.failed, op.Description)
		return nil
	}
	d.left++
	if services.BindingIdle(op, i) != nil {
		return nil
	}
	j, err := services.Unbind(c.Session, b)
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
	case d.broken(op):
		d.failed = append(d.failed, op.Description)
		return nil
	}
	d.left++
	if services.Changing(op) {
		return nil
	}
	j, err := services.BeginDelete(c.Session, i)
	if err != nil {
		return err
	}
	return store.Jobs.Insert(c.Tx, j)
}

// area asks brokers to delete what they have for a space or an org, which the
// filter names.
func (d *deletion) area(c *call, filter, guid string) error {
	instances, err := store.ServiceInstances.Where(c.Tx, map[string][]string{"owner_" + filter: {guid}, "type": {cf.Managed}})
	if err != nil {
		return err
	}
	for _, i := range instances {
		if d.paused(c) {
			return nil
		}
		if err := d.instance(c, i); err != nil {
			return err
		}
	}
	return d.unbindManaged(c, "app_"+filter, guid)
}

// delete does a transaction of what a job is to delete, unless a broker has
// anything for it, and tells whether it is gone.
func (c *call) delete(j *cf.Job, d *deletion) (done bool, err error) {
	guid := j.ResourceGUID
	switch j.Operation {
	case jobDeleteApp:
		return deleteRow(c, store.Apps, guid, d, d.app, removeApp)
	case jobDeleteDomain:
		return deleteRow(c, store.Domains, guid, d, nil, func(c *call, x *cf.Domain) error { return routes.DeleteDomain(c.Session, x) })
	case jobDeleteUnmapped:
		return deleteRow(c, store.Spaces, guid, d, nil, removeUnmapped)
	case jobDeleteSpace:
		return deleteRow(c, store.Spaces, guid, d, func(c *call, s *cf.Space) error { return d.area(c, "space_guids", s.GUID) }, removeSpace)
	}
	return deleteRow(c, store.Orgs, guid, d, func(c *call, o *cf.Org) error { return d.area(c, "organization_guids", o.GUID) }, removeOrg)
}

// deleteRow removes a row of a table once ask has nothing of brokers left.
func deleteRow[T any](c *call, t *store.Table[T], guid string, d *deletion, ask, remove func(*call, *T) error) (bool, error) {
	row, err := t.Get(c.Tx, guid)
	if err != nil {
		return gone(err)
	}
	if ask != nil {
		err = ask(c, row)
	}
	if err != nil || d.more || d.left+len(d.failed) > 0 {
		return false, err
	}
	c.BeginPart()
	err = remove(c, row)
	if errors.Is(err, control.ErrMore) {
		d.more = true
		return false, nil
	}
	return err == nil, err
}

// deletes begins a deletion, and answers with its job: it is COMPLETE if one
// transaction sufficed.
func (c *call) deletes(operation, resourceType, guid string) (*response, error) {
	d := &deletion{since: c.Tx.Now}
	done, err := c.delete(&cf.Job{Operation: operation, ResourceGUID: guid}, d)
	if err != nil {
		return nil, err
	}
	if !done {
		return c.waiting(operation, resourceType, guid)
	}
	return c.accepted(operation, resourceType, guid)
}

// gone tells that what is not found was deleted meanwhile.
func gone(err error) (bool, error) {
	if store.IsNotFound(err) {
		return true, nil
	}
	return false, err
}

// maxReasons is how many reasons a failed deletion tells: a broker can fail for
// thousands of bindings, and each reason can be long.
const maxReasons = 20

// fault is why a deletion failed, as its job shows it.
func (d *deletion) fault(c *call, j *cf.Job) *cf.Error {
	if more := len(d.failed) - maxReasons; more > 0 {
		d.failed = append(d.failed[:maxReasons], fmt.Sprintf("and %d more", more))
	}
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
	return control.EachOf(c.Session, store.ServiceBindings, "app_guids", app.GUID, func(b *cf.ServiceBinding) error {
		i, err := store.ServiceInstances.Get(c.Tx, b.InstanceGUID)
		if err != nil {
			return err
		}
		return services.RemoveBinding(c.Session, b, i)
	})
}

// removeServicesOf deletes the service instances of a space, which are
// user-provided by now, and takes out of it what is shared with it.
func removeServicesOf(c *call, s *cf.Space) error {
	err := control.EachOf(c.Session, store.ServiceInstances, "owner_space_guids", s.GUID, func(i *cf.ServiceInstance) error {
		return services.Remove(c.Session, i, audit.UserProvidedDelete)
	})
	if err != nil {
		return err
	}
	return control.EachOf(c.Session, store.ServiceInstances, "shared_space_guids", s.GUID, func(i *cf.ServiceInstance) error {
		return services.Unshare(c.Session, i, s.GUID)
	})
}

// removeUnmapped deletes the routes of a space that lead nowhere.
func removeUnmapped(c *call, s *cf.Space) error {
	return control.EachWhere(c.Session, store.Routes, map[string][]string{"owner_space_guids": {s.GUID}, "unmapped": {"1"}}, func(r *cf.Route) error { return routes.Remove(c.Session, r) })
}
