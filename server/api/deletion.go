package api

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"time"

	"cupola/server/authz"
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

// waiting answers with a job that deletes when brokers are done.
func (c *call) waiting(operation, resourceType, guid string) (*response, error) {
	input, err := json.Marshal(c.who())
	if err != nil {
		return nil, err
	}
	return c.job(&cf.Job{Operation: operation, ResourceGUID: guid, ResourceType: resourceType, State: cf.JobProcessing, Input: string(input)})
}

// resweep is how often deletions are looked at though nothing changed.
const resweep = time.Minute

// Run ends deletions that wait for brokers, until ctx ends.
func (s *Server) Run(ctx context.Context) error {
	changed, stop := s.Store.Watch(store.ServiceBindings.Name(), store.ServiceInstances.Name())
	defer stop()
	tick := time.NewTicker(resweep)
	defer tick.Stop()
	for {
		if err := s.finishDeletions(ctx); err != nil && ctx.Err() == nil {
			s.Log.ErrorContext(ctx, "deletions were not finished", slog.Any("err", err))
		}
		select {
		case <-changed:
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// finishDeletions looks at each deletion that waits.
func (s *Server) finishDeletions(ctx context.Context) error {
	var jobs []*cf.Job
	err := s.Store.Read(ctx, func(tx *store.Tx) (err error) {
		jobs, _, err = store.Jobs.List(tx, store.Query{Where: map[string][]string{"states": {string(cf.JobProcessing)}, "operations": {jobDeleteApp, jobDeleteSpace, jobDeleteOrg}}})
		return err
	})
	for _, j := range jobs {
		if err := s.Store.Write(ctx, func(tx *store.Tx) error { return s.finishDeletion(ctx, tx, j) }); err != nil {
			return err
		}
	}
	return err
}

func (s *Server) finishDeletion(ctx context.Context, tx *store.Tx, j *cf.Job) error {
	var who cf.Actor
	if err := json.Unmarshal([]byte(j.Input), &who); err != nil {
		return err
	}
	c := &call{s: s, ctx: ctx, Tx: tx, Actor: &authz.Actor{GUID: who.GUID, Name: who.Name, Type: who.Type}}
	d := &deletion{since: j.CreatedAt}
	done, err := c.delete(j, d)
	switch {
	case store.IsNotFound(err), err == nil && done:
		j.State = cf.JobComplete
	case err != nil:
		return err
	case d.left == 0:
		j.State = cf.JobFailed
		j.Errors = []cf.JobError{jobError(d.fault(c, j))}
	default:
		return nil
	}
	return store.Jobs.Update(tx, j)
}

// delete deletes what a job is to, if no broker has anything for it, and tells
// whether it did.
func (c *call) delete(j *cf.Job, d *deletion) (done bool, err error) {
	switch j.Operation {
	case jobDeleteApp:
		app, err := store.Apps.Get(c.Tx, j.ResourceGUID)
		if err != nil {
			return false, err
		}
		return c.deleteIf(d, d.serviceless(c, []*cf.App{app}), func() error { return removeApp(c, app) })
	case jobDeleteSpace:
		space, err := store.Spaces.Get(c.Tx, j.ResourceGUID)
		if err != nil {
			return false, err
		}
		return c.deleteIf(d, d.space(c, space), func() error { return removeSpace(c, space) })
	}
	org, err := store.Orgs.Get(c.Tx, j.ResourceGUID)
	if err != nil {
		return false, err
	}
	return c.deleteIf(d, d.org(c, org), func() error { return removeOrg(c, org) })
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
