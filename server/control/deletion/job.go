package deletion

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"cupola/server/control"
	"cupola/server/control/routes"
	"cupola/server/control/services"
	"cupola/store"
	"cupola/store/cf"
)

// The operations of jobs that delete what can be much, or have services of
// brokers in it.
const (
	App      = "app.delete"
	Space    = "space.delete"
	Org      = "organization.delete"
	Domain   = "domain.delete"
	Unmapped = "space.delete_unmapped_routes"
)

// Progress is the deletion of apps and service instances that waits for brokers
// to delete what they have for them.
type Progress struct {
	Since  time.Time
	Left   int      // things that a broker still has
	failed []string // why some could not be deleted
	More   bool     // there is more to do than the transaction did
}

// app asks brokers to delete the bindings of an app.
func (d *Progress) app(c *control.Session, a *cf.App) error {
	return d.unbindManaged(c, "app_guids", a.GUID)
}

// unbindManaged asks brokers to delete the managed bindings that a filter
// accepts.
func (d *Progress) unbindManaged(c *control.Session, filter, value string) error {
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
func (d *Progress) paused(c *control.Session) bool {
	d.More = d.More || c.Paused()
	return d.More
}

// binding makes the broker delete a binding once it can, and checks what has
// become of it.
func (d *Progress) binding(c *control.Session, b *cf.ServiceBinding, i *cf.ServiceInstance) error {
	op := b.LastOperation
	switch {
	case op.Is(cf.OpCreate, cf.OpFailed):
		return services.ReplaceBinding(c, b, i)
	case d.broken(op):
		d.failed = append(d.failed, op.Description)
		return nil
	}
	d.Left++
	if services.BindingIdle(op, i) != nil {
		return nil
	}
	_, err := services.Unbind(c, b)
	return err
}

// broken reports whether it failed since the deletion began.
func (d *Progress) broken(op cf.LastOperation) bool {
	return op.Is(cf.OpDelete, cf.OpFailed) && !op.UpdatedAt.Before(d.Since)
}

// instance makes the broker delete a service instance once it can, and checks what
// has become of it.
func (d *Progress) instance(c *control.Session, i *cf.ServiceInstance) error {
	op := i.LastOperation
	switch {
	case d.broken(op):
		d.failed = append(d.failed, op.Description)
		return nil
	}
	d.Left++
	if services.Changing(op) {
		return nil
	}
	_, err := services.BeginDelete(c, i)
	return err
}

// area asks brokers to delete what they have for a space or an org, which the
// filter names.
func (d *Progress) area(c *control.Session, filter, guid string) error {
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

// Delete does one transaction of a deletion job, unless a broker has
// anything for it, and reports whether it is gone.
func Delete(c *control.Session, j *cf.Job, d *Progress) (done bool, err error) {
	guid := j.ResourceGUID
	switch j.Operation {
	case App:
		return deleteRow(c, store.Apps, guid, d, d.app, removeApp)
	case Domain:
		return deleteRow(c, store.Domains, guid, d, nil, routes.DeleteDomain)
	case Unmapped:
		return deleteRow(c, store.Spaces, guid, d, nil, removeUnmapped)
	case Space:
		return deleteRow(c, store.Spaces, guid, d, func(c *control.Session, s *cf.Space) error { return d.area(c, "space_guids", s.GUID) }, removeSpace)
	}
	return deleteRow(c, store.Orgs, guid, d, func(c *control.Session, o *cf.Org) error { return d.area(c, "organization_guids", o.GUID) }, removeOrg)
}

// deleteRow removes a row of a table once ask has nothing of brokers left.
func deleteRow[T any](c *control.Session, t *store.Table[T], guid string, d *Progress, ask, remove func(*control.Session, *T) error) (bool, error) {
	row, err := t.Get(c.Tx, guid)
	if err != nil {
		return gone(err)
	}
	if ask != nil {
		err = ask(c, row)
	}
	if err != nil || d.More || d.Left+len(d.failed) > 0 {
		return false, err
	}
	c.BeginPart()
	err = remove(c, row)
	if errors.Is(err, control.ErrMore) {
		d.More = true
		return false, nil
	}
	return err == nil, err
}

// gone treats what is not found as deleted.
func gone(err error) (bool, error) {
	if store.IsNotFound(err) {
		return true, nil
	}
	return false, err
}

// maxReasons is how many reasons a failed deletion tells: a broker can fail for
// thousands of bindings, and each reason can be long.
const maxReasons = 20

// Fault is why a deletion failed, as its job shows it.
func (d *Progress) Fault(c *control.Session, j *cf.Job) *cf.Error {
	if more := len(d.failed) - maxReasons; more > 0 {
		d.failed = append(d.failed[:maxReasons], fmt.Sprintf("and %d more", more))
	}
	what := "\t" + strings.Join(d.failed, "\n\n\t")
	switch j.Operation {
	case Space:
		if s, err := store.Spaces.Get(c.Tx, j.ResourceGUID); err == nil {
			return cf.Errorf(cf.SpaceDeletionFailed, "Deletion of space %s failed because one or more resources within could not be deleted.\n\n%s", s.Name, what)
		}
	case Org:
		if o, err := store.Orgs.Get(c.Tx, j.ResourceGUID); err == nil {
			return cf.Errorf(cf.OrgDeletionFailed, "Deletion of organization %s failed because one or more resources within could not be deleted.\n\n%s", o.Name, what)
		}
	}
	return cf.Unprocessable("%s", strings.Join(d.failed, "\n"))
}
