package jobs

import (
	"cupola/server/authz"
	"cupola/server/control"
	"cupola/server/control/manifests"
	"cupola/store"
	"cupola/store/cf"
)

// applyNext applies the next part of a manifest's job, and then ends the job if
// nothing is left to do or to wait for. It has the current rights of the user who asked:
// roles may have been removed since.
func applyNext(c *control.Session, j *cf.Job, in *input) (e end, err error) {
	part, err := store.JobParts.Next(c.Tx, j.GUID)
	if err != nil {
		return e, err
	}
	if part == nil {
		e.done, e.fault, err = manifests.BindingsMade(c, in.Bindings)
		return e, err
	}
	c.Rule = authz.SpaceDeveloper // the rule of apply_manifest
	if err := c.Act(in.Actor, in.Scopes); err != nil {
		return e, err
	}
	if err := manifests.ApplyPart(c, part); err != nil {
		return e, err
	}
	if err := keepWaits(c, j, in); err != nil {
		return e, err
	}
	if err := store.JobParts.Delete(c.Tx, part.ID); err != nil {
		return e, err
	}
	part, err = store.JobParts.Next(c.Tx, j.GUID)
	e.more, e.done = part != nil || len(in.Bindings) > 0, part == nil && len(in.Bindings) == 0
	return e, err
}

// keepWaits keeps in a job which bindings it waits for, and what it warns of.
func keepWaits(c *control.Session, j *cf.Job, in *input) (err error) {
	if len(c.Awaited)+len(c.Warnings) == 0 {
		return nil
	}
	in.Bindings = append(in.Bindings, c.Awaited...)
	j.Warnings = append(j.Warnings, c.Warnings...)
	j.Input, err = in.text()
	return control.OrElse(err, store.Jobs.Update(c.Tx, j))
}
