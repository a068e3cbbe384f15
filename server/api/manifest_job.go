package api

import (
	"errors"
	"time"

	"cupola/server/control"
	"cupola/server/control/manifests"
	"cupola/server/manifest"
	"cupola/store"
	"cupola/store/cf"
)

const (
	// atOnce is the weight of the largest manifest that is applied in one
	// transaction: about 20 ms of the database.
	atOnce = 200
	// partTime is how long one transaction makes apps.
	partTime = 5 * time.Millisecond
)

// applyManifest brings a space's apps to what a manifest says. As in Cloud
// Controller the request creates the apps that are missing and a job applies the
// rest, app by app: what is wrong with one fails the job, and what was applied
// before stays.
//
// A small manifest is applied in one transaction with its job, which is COMPLETE
// then. Any other is cut into parts, one transaction each, with which the job is
// durable.
func applyManifest(c *call) (*response, error) {
	m, err := c.readManifest()
	if err != nil {
		return nil, err
	}
	small := m.Weight() <= atOnce
	if small {
		res, err := inTx(func(c *call) (*response, error) { return c.applyAtOnce(m) })(c)
		if err == nil || !isFault(err) {
			return res, err
		}
	}
	parts, err := c.createApps(m)
	if err != nil {
		return nil, err
	}
	var job *cf.Job
	res, err := inTx(func(c *call) (res *response, err error) {
		job, res, err = c.manifestJob(parts)
		return res, err
	})(c)
	for more := small; more && err == nil; { // it fails as a large one does, but at the first look
		more, err = c.s.advance(store.As(c.Context(), c.identity.guid()), job.GUID)
	}
	return res, err
}

// isFault reports whether an error is one that a client can act on.
func isFault(err error) bool {
	var e *cf.Error
	return errors.As(err, &e)
}

// applyAtOnce applies a whole manifest.
func (c *call) applyAtOnce(m *manifest.Manifest) (*response, error) {
	space, err := c.manifestSpace(m)
	if err != nil {
		return nil, err
	}
	var apps []*cf.App
	for i := range m.Apps {
		app, err := manifests.FindOrCreate(c.Session, space, &m.Apps[i])
		if err != nil {
			return nil, err
		}
		apps = append(apps, app)
	}
	for i, app := range apps {
		if app, err = store.Apps.Get(c.Tx, app.GUID); err != nil { // an earlier entry can have changed it
			return nil, err
		}
		if err := manifests.Apply(c.Session, app, &m.Apps[i]); err != nil {
			return nil, err
		}
	}
	if len(c.Awaited) > 0 {
		return c.waiting(jobApplyManifest, "spaces", space.GUID)
	}
	return c.accepted(jobApplyManifest, "spaces", space.GUID)
}

// manifestSpace is the space of {guid}, if the actor may apply the manifest there.
func (c *call) manifestSpace(m *manifest.Manifest) (*cf.Space, error) {
	space, err := c.space()
	if err != nil {
		return nil, err
	}
	return space, manifests.CheckOptions(c.Session, m)
}

// createApps creates the apps of a manifest that are missing, some in each
// transaction, and returns the parts of its job.
func (c *call) createApps(m *manifest.Manifest) (parts []cf.JobPart, err error) {
	for rest := m.Apps; len(rest) > 0; {
		var made []*cf.App
		_, err := inTx(func(c *call) (_ *response, err error) {
			made, err = c.createSome(m, rest)
			return nil, err
		})(c)
		if err != nil {
			return nil, err
		}
		for i, app := range made {
			texts, err := rest[i].Parts()
			if err != nil {
				return nil, err
			}
			for _, text := range texts {
				parts = append(parts, cf.JobPart{AppGUID: app.GUID, Input: text})
			}
		}
		rest = rest[len(made):]
	}
	return parts, nil
}

// createSome finds or creates the first apps of a manifest's, as many as there is
// time for.
func (c *call) createSome(m *manifest.Manifest, apps []manifest.App) (made []*cf.App, err error) {
	began := time.Now()
	space, err := c.manifestSpace(m)
	if err != nil {
		return nil, err
	}
	for i := range apps {
		app, err := manifests.FindOrCreate(c.Session, space, &apps[i])
		if err != nil {
			return nil, err
		}
		made = append(made, app)
		if time.Since(began) > partTime {
			break
		}
	}
	return made, nil
}

// manifestJob answers with a job that has the parts to do.
func (c *call) manifestJob(parts []cf.JobPart) (*cf.Job, *response, error) {
	space, err := c.space()
	if err != nil {
		return nil, nil, err
	}
	job, err := c.waitingJob(jobApplyManifest, "spaces", space.GUID)
	if err != nil {
		return nil, nil, err
	}
	res, err := c.job(job)
	if err != nil {
		return nil, nil, err
	}
	return job, res, c.Tx.AddJobParts(job.GUID, parts)
}

// applyNext applies the next part of a manifest's job, and then ends the job if
// nothing is left to do or to wait for. It may do what the one who asked may do
// now: roles can have gone since.
func applyNext(c *control.Session, j *cf.Job, w *waitingFor) (end jobEnd, err error) {
	part, err := c.Tx.NextJobPart(j.GUID)
	if err != nil {
		return end, err
	}
	if part == nil {
		end.done, end.fault, err = manifests.BindingsMade(c, w.Bindings)
		return end, err
	}
	if err := actAs(c, w); err != nil {
		return end, err
	}
	if err := manifests.ApplyPart(c, part); err != nil {
		return end, err
	}
	if err := keepWaits(c, j, w); err != nil {
		return end, err
	}
	if err := c.Tx.DeleteJobPart(part.ID); err != nil {
		return end, err
	}
	part, err = c.Tx.NextJobPart(j.GUID)
	end.more, end.done = part != nil || len(w.Bindings) > 0, part == nil && len(w.Bindings) == 0
	return end, err
}

// keepWaits keeps in a job which bindings it waits for, and what it warns of.
func keepWaits(c *control.Session, j *cf.Job, w *waitingFor) (err error) {
	if len(c.Awaited)+len(c.Warnings) == 0 {
		return nil
	}
	w.Bindings = append(w.Bindings, c.Awaited...)
	j.Warnings = append(j.Warnings, c.Warnings...)
	j.Input, err = w.text()
	return control.OrElse(err, store.Jobs.Update(c.Tx, j))
}
