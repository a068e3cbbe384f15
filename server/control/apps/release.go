package apps

import (
	"cmp"
	"errors"

	"cupola/server/authz"
	"cupola/server/control"
	"cupola/server/control/change"
	"cupola/server/control/services"
	"cupola/store"
	"cupola/store/cf"
)

// releaseType is the type of the process whose command runs before a droplet is used. It
// has no instances, unless a user scales it.
const releaseType = "release"

// Release makes the task of an app's release command, with the droplet of a build: that of
// the process "release", or else the droplet's. Nil is for an app without one. After an
// error of what was asked for, a cf.Error, nothing of the task is left in the transaction.
func Release(tx *store.Tx, b *cf.Build, d *cf.Droplet) (*cf.Task, error) {
	c := &control.Session{Tx: tx, Actor: &authz.Actor{GUID: b.CreatedBy.GUID, Name: b.CreatedBy.Name, Type: b.CreatedBy.Type}, Platform: &control.Platform{}}
	app, err := store.Apps.Get(tx, b.AppGUID)
	if err != nil {
		return nil, err
	}
	p, err := Process(c, app, releaseType)
	if store.IsNotFound(err) {
		p, err = NewProcess(app, releaseType), nil
	}
	if err != nil {
		return nil, err
	}
	command := cmp.Or(p.Command, d.ProcessTypes[releaseType])
	if command == "" {
		return nil, nil
	}
	if err := services.Fit(c, app, services.OfTask); err != nil {
		return nil, err
	}
	t, err := newTask(c, app, NewTask{Name: change.To(releaseType), Command: change.To(command), MemoryMB: change.To(p.MemoryMB), DiskMB: change.To(p.DiskMB),
		LogRateLimit: change.To(p.LogRateLimit), DropletGUID: change.To(d.GUID), User: change.To(p.User)})
	if err != nil {
		return nil, err
	}
	t.BuildGUID = b.GUID
	err = run(c, app, t)
	if _, refused := errors.AsType[*cf.Error](err); refused {
		err = errors.Join(err, store.Tasks.Delete(tx, t.GUID))
	}
	return t, err
}
