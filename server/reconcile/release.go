package reconcile

import (
	"errors"
	"strings"
	"time"

	"cupola/runtime/lrp"
	"cupola/server/desire"
	"cupola/store"
	"cupola/store/cf"
)

// An app may have a release command, which migrates a database, say. It runs as a task with
// the droplet that a build has made, and the build is STAGED once it has succeeded: so a
// push goes no further when it fails, whatever runs, and clients print its output as that of
// the staging. Until then the build is STAGING and names its droplet.

// releaser makes the task of an app's release command, with the droplet of a build; nil for
// an app without one. A cf.Error says why it cannot run.
type releaser func(tx *store.Tx, b *cf.Build, d *cf.Droplet) (*cf.Task, error)

// staged ends the staging of a build with a droplet. It returns lines for the app's log.
func (r releaser) staged(tx *store.Tx, b *cf.Build, d *cf.Droplet) ([]lrp.LogLine, error) {
	if err := store.Droplets.Insert(tx, d); err != nil {
		return nil, err
	}
	b.DropletGUID = d.GUID
	var t *cf.Task
	var err error
	if r != nil {
		t, err = r(tx, b, d)
	}
	refused, ok := errors.AsType[*cf.Error](err)
	switch {
	case ok:
		return releaseFailed(tx, b, refused.Detail)
	case err != nil:
		return nil, err
	case t == nil:
		return complete(tx, b, d)
	}
	line := note(b.AppGUID, "Running the release command as task %s", t.Name)
	line.Target.Source = "STG"
	return []lrp.LogLine{line}, store.Builds.Update(tx, b)
}

// complete makes a build STAGED.
func complete(tx *store.Tx, b *cf.Build, d *cf.Droplet) ([]lrp.LogLine, error) {
	b.State = cf.BuildStaged
	if err := store.Builds.Update(tx, b); err != nil {
		return nil, err
	}
	return []lrp.LogLine{note(b.AppGUID, "Staging complete for build %s", b.GUID)}, recordDroplet(tx, b, d)
}

// released ends a build whose release command has ended.
func released(tx *store.Tx, t *cf.Task) ([]lrp.LogLine, error) {
	b, err := store.Builds.Get(tx, t.BuildGUID)
	if err != nil || b.State != cf.BuildStaging {
		return nil, ignoreNotFound(err)
	}
	if t.State == cf.TaskFailed {
		return releaseFailed(tx, b, strings.TrimPrefix(t.FailureReason, "STG: "))
	}
	d, err := store.Droplets.Get(tx, b.DropletGUID)
	if err != nil {
		return nil, err
	}
	return complete(tx, b, d)
}

// releaseFailed fails a build because of its release command. Its droplet is deleted: no
// client is to start it by mistake.
func releaseFailed(tx *store.Tx, b *cf.Build, reason string) ([]lrp.LogLine, error) {
	if err := store.Droplets.Delete(tx, b.DropletGUID); err != nil {
		return nil, err
	}
	failure := failureOf(desire.CannotStage("the release command failed: " + reason))
	b.State, b.DropletGUID, b.Error = cf.BuildFailed, "", failure.shown
	if err := store.Builds.Update(tx, b); err != nil {
		return nil, err
	}
	return failure.lines(b, reason), recordFailed(tx, b, reason)
}

// overdue is why a task takes too long, "" if it does not: a release command gets as long as
// a staging.
func overdue(t *cf.Task, now time.Time) string {
	if t.BuildGUID == "" || now.Sub(t.CreatedAt) < desire.StagingTimeout {
		return ""
	}
	return "exceeded " + desire.StagingTimeout.String() + " timeout"
}
