package reconcile

import (
	"cmp"
	"errors"
	"strings"

	"cupola/runtime/lrp"
	"cupola/server/desire"
	"cupola/store"
	"cupola/store/cf"
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

// recordOutcome records in a task's owner how it ended, unless the owner is gone. It
// returns the lines that the owner's log gets once that is committed.
func (l *Loop) recordOutcome(tx *store.Tx, t lrp.Task, o outcome) (lines []lrp.LogLine, err error) {
	switch t.Domain {
	case lrp.DomainStaging:
		lines, err = l.recordBuild(tx, t.GUID, o)
	case lrp.DomainTasks:
		lines, err = recordTask(tx, t.GUID, o)
	default:
		if s := l.source(t.Domain); s != nil {
			err = s.Ended(tx, t.GUID, Ending{Result: o.result, Reason: o.ended(), Lost: o.lost})
		} else {
			err = recordBBSTask(tx, t, o)
		}
	}
	if store.IsNotFound(err) {
		return nil, nil
	}
	return lines, err
}

func recordTask(tx *store.Tx, guid string, o outcome) ([]lrp.LogLine, error) {
	t, err := store.Tasks.Get(tx, guid)
	if err != nil {
		return nil, err
	}
	t.State = cf.TaskSucceeded
	if o.failed {
		t.State, t.FailureReason = cf.TaskFailed, o.reason+o.fault
	}
	if err := store.Tasks.Update(tx, t); err != nil || t.BuildGUID == "" {
		return nil, err
	}
	return released(tx, t)
}

// recordBuild ends a build: with a droplet, or with the error that Cloud
// Controller gives. It returns what Cloud Controller logs of that.
func (l *Loop) recordBuild(tx *store.Tx, guid string, o outcome) ([]lrp.LogLine, error) {
	b, err := store.Builds.Get(tx, guid)
	if err != nil || b.State != cf.BuildStaging {
		return nil, err
	}
	d, failure, err := droplet(tx, b, o)
	if err != nil {
		return nil, err
	}
	if failure != nil {
		b.State, b.Error = cf.BuildFailed, failure.shown
		l.log.Info("build failed", "app_guid", b.AppGUID, "task_guid", guid, "err", cmp.Or(failure.cause, o.reason+o.fault))
		if err := store.Builds.Update(tx, b); err != nil {
			return nil, err
		}
		return failure.lines(b, o.reason), recordFailed(tx, b, o.reason)
	}
	if cache := output(o, desire.OutputCache); cache.Digest != "" {
		if err := store.BuildCaches.Set(tx, b.AppGUID, desire.CacheKey(b.Lifecycle), cache.Digest); err != nil {
			return nil, err
		}
	}
	return l.release.staged(tx, b, d)
}

// stagingFailure is why a build made no droplet.
type stagingFailure struct {
	shown string // the build's error
	cause string // what its log has to add; "" if nothing
}

func failureOf(e desire.BuildError) *stagingFailure {
	return &stagingFailure{shown: e.Error(), cause: e.Cause}
}

// lines are Cloud Controller's two lines in the app's log
// (staging_completion_handler.rb, build_event_repository.rb). The cause comes
// before them, as a line of the staging, which the cf CLI shows.
func (f stagingFailure) lines(b *cf.Build, reason string) (all []lrp.LogLine) {
	if f.cause != "" {
		line := note(b.AppGUID, "Staging failed: %s", f.cause)
		line.Target.Source, line.Err = "STG", true
		all = append(all, line)
	}
	last := note(b.AppGUID, "Failed to stage build: %s", desire.FailureMessage(f.shown, reason))
	last.Err = true
	return append(all, note(b.AppGUID, "Staging failed for build %s", b.GUID), last)
}

// droplet is the droplet that a staging made, or why it made none.
func droplet(tx *store.Tx, b *cf.Build, o outcome) (*cf.Droplet, *stagingFailure, error) {
	switch {
	case o.fault != "":
		_, detail, _ := strings.Cut(o.fault, " - ")
		return nil, &stagingFailure{shown: o.fault, cause: strings.TrimPrefix(detail, "Staging error: ")}, nil
	case o.failed:
		return nil, failureOf(desire.StagingFailure(o.reason)), nil
	}
	blob := output(o, desire.OutputDroplet)
	d := &cf.Droplet{
		AppGUID: b.AppGUID, PackageGUID: b.PackageGUID, BuildGUID: b.GUID, State: cf.DropletStaged,
		Digest: blob.Digest, Size: blob.Size, Stack: b.Lifecycle.Stack, Lifecycle: b.Lifecycle,
	}
	err := desire.ReadResult(o.result, d)
	if refused, ok := errors.AsType[desire.BuildError](err); ok {
		return nil, failureOf(refused), nil
	}
	if err != nil {
		return nil, nil, err
	}
	if blob.Digest == "" {
		return nil, failureOf(desire.ErrNoDroplet), nil
	}
	startable, err := hasStartCommand(tx, b, d)
	if err != nil {
		return nil, nil, err
	}
	if !startable {
		return nil, failureOf(desire.ErrNoStartCommand), nil
	}
	return d, nil, nil
}

// hasStartCommand reports whether a droplet has a process, or the newest web
// process of its app a command (CC: StagingCompletionHandler#handle_success).
func hasStartCommand(tx *store.Tx, b *cf.Build, d *cf.Droplet) (bool, error) {
	if len(d.ProcessTypes) > 0 {
		return true, nil
	}
	web, err := store.Processes.First(tx, store.Query{Where: map[string][]string{"app_guids": {b.AppGUID}, "types": {"web"}}, Desc: true})
	if store.IsNotFound(err) {
		return false, nil
	}
	return err == nil && web.Command != "", err
}

func output(o outcome, name string) lrp.Blob {
	for _, b := range o.outputs {
		if b.Name == name {
			return b
		}
	}
	return lrp.Blob{}
}
