package reconcile

import (
	"cupola/runtime/lrp"
	"cupola/server/desire"
	"cupola/store"
	"cupola/store/cf"
	"errors"
)

// outcome is how a task ended.
type outcome struct {
	failed  bool
	reason  string // in Diego's words
	lost    bool   // how it ended is unknown
	fault   string // in the owner's words, instead of reason
	result  []byte
	outputs []lrp.Blob
}

// settle records in a task's owner how it ended, unless the owner is gone.
func (l *Loop) settle(tx *store.Tx, t lrp.Task, o outcome) error {
	var err error
	switch t.Domain {
	case lrp.DomainStaging:
		err = l.settleBuild(tx, t.GUID, o)
	case lrp.DomainTasks:
		err = settleTask(tx, t.GUID, o)
	default:
		if s := l.source(t.Domain); s != nil {
			err = s.Ended(tx, t.GUID, Ending{Result: o.result, Reason: o.ended(), Lost: o.lost})
		} else {
			err = settleBBSTask(tx, t, o)
		}
	}
	if store.IsNotFound(err) {
		return nil
	}
	return err
}

func settleTask(tx *store.Tx, guid string, o outcome) error {
	t, err := store.Tasks.Get(tx, guid)
	if err != nil {
		return err
	}
	t.State = cf.TaskSucceeded
	if o.failed {
		t.State, t.FailureReason = cf.TaskFailed, o.reason+o.fault
	}
	return store.Tasks.Update(tx, t)
}

// settleBuild ends a build: with a droplet, or with the error that Cloud
// Controller gives.
func (l *Loop) settleBuild(tx *store.Tx, guid string, o outcome) error {
	b, err := store.Builds.Get(tx, guid)
	if err != nil || b.State != cf.BuildStaging {
		return err
	}
	d, fault := droplet(b, o)
	if fault != "" {
		b.State, b.Error = cf.BuildFailed, fault
		l.log.Info("build failed", "app_guid", b.AppGUID, "task_guid", guid, "err", o.reason+o.fault)
		if err := store.Builds.Update(tx, b); err != nil {
			return err
		}
		return recordFailed(tx, b)
	}
	if err := store.Droplets.Insert(tx, d); err != nil {
		return err
	}
	if cache := output(o, desire.OutputCache); cache.Digest != "" {
		if err := store.BuildCaches.Set(tx, b.AppGUID, desire.CacheKey(b.Lifecycle), cache.Digest); err != nil {
			return err
		}
	}
	b.State, b.DropletGUID = cf.BuildStaged, d.GUID
	if err := store.Builds.Update(tx, b); err != nil {
		return err
	}
	return recordDroplet(tx, b, d)
}

// droplet is the droplet that a staging made, or why it made none.
func droplet(b *cf.Build, o outcome) (d *cf.Droplet, fault string) {
	switch {
	case o.fault != "":
		return nil, o.fault
	case o.failed:
		return nil, desire.StagingFailure(o.reason).Error()
	}
	blob := output(o, desire.OutputDroplet)
	d = &cf.Droplet{
		AppGUID: b.AppGUID, PackageGUID: b.PackageGUID, BuildGUID: b.GUID, State: cf.DropletStaged,
		Digest: blob.Digest, Size: blob.Size, Stack: b.Lifecycle.Stack, Lifecycle: b.Lifecycle,
	}
	err := desire.ReadResult(o.result, d, len(b.Lifecycle.Buildpacks) > 0)
	if refused, ok := errors.AsType[desire.BuildError](err); ok {
		return nil, refused.Error()
	}
	if err != nil || blob.Digest == "" {
		return nil, desire.StagingFailure("").Error()
	}
	return d, ""
}

func output(o outcome, name string) lrp.Blob {
	for _, b := range o.outputs {
		if b.Name == name {
			return b
		}
	}
	return lrp.Blob{}
}
