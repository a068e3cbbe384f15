package api

import (
	"errors"

	"cupola/server/control/jobs"
	"cupola/server/control/manifests"
	"cupola/store"
	"cupola/store/cf"
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
	m, err := readManifest(c)
	if err != nil {
		return nil, err
	}
	if m.Small() {
		res, err := inTx(func(c *call) (*response, error) { return applyAtOnce(c, m) })(c)
		if err == nil || !isFault(err) {
			return res, err
		}
	}
	parts, err := createApps(c, m)
	if err != nil {
		return nil, err
	}
	var job *cf.Job
	res, err := inTx(func(c *call) (res *response, err error) {
		job, err = manifestJob(c, parts)
		return underWay(c, job), err
	})(c)
	for more := m.Small(); more && err == nil; { // it fails as a large one does, but at the first look
		more, err = c.s.Jobs.Advance(store.As(c.Context(), c.identity.Actor().GUID), job.GUID)
	}
	return res, err
}

// isFault reports whether an error is one that a client can act on.
func isFault(err error) bool {
	var e *cf.Error
	return errors.As(err, &e)
}

// applyAtOnce applies a whole manifest.
func applyAtOnce(c *call, m *manifests.Manifest) (*response, error) {
	space, err := findSpace(c)
	if err != nil {
		return nil, err
	}
	if err := m.Apply(c.Session, space); err != nil {
		return nil, err
	}
	if len(c.Awaited) > 0 {
		j, err := jobs.Add(c.Session, jobs.Manifest, "spaces", space.GUID)
		return underWay(c, j), err
	}
	return c.accepted(jobs.Manifest, "spaces", space.GUID)
}

// createApps creates the apps of a manifest that are missing, and returns the
// parts of its job.
func createApps(c *call, m *manifests.Manifest) ([]cf.JobPart, error) {
	_, err := inTx(func(c *call) (*response, error) {
		space, err := findSpace(c)
		if err != nil {
			return nil, err
		}
		return nil, m.CreateApps(c.Session, space)
	})(c)
	if err != nil {
		return nil, err
	}
	return m.Parts()
}

// manifestJob adds a job for the parts.
func manifestJob(c *call, parts []cf.JobPart) (*cf.Job, error) {
	space, err := findSpace(c)
	if err != nil {
		return nil, err
	}
	j, err := jobs.Add(c.Session, jobs.Manifest, "spaces", space.GUID)
	if err != nil {
		return nil, err
	}
	return j, store.JobParts.Add(c.Tx, j.GUID, parts)
}
