package reconcile

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"cupola/runtime/lrp"
	"cupola/server/control/audit"
	"cupola/server/desire"
	"cupola/store"
	"cupola/store/cf"
)

// recordDroplet writes Cloud Controller's audit events of a staged droplet and its build.
func recordDroplet(tx *store.Tx, b *cf.Build, d *cf.Droplet) error {
	app, err := store.Apps.Get(tx, b.AppGUID)
	if err != nil {
		return err
	}
	if err := audit.App(tx, b.CreatedBy, audit.AppDropletCreate, app, audit.Data{"droplet_guid": d.GUID, "package_guid": d.PackageGUID}); err != nil {
		return err
	}
	return audit.App(tx, b.CreatedBy, audit.AppBuildStaged, app, audit.Data{"build_guid": b.GUID, "package_guid": b.PackageGUID,
		"droplet_guid": d.GUID, "buildpacks": buildpacksOf(d)})
}

// buildpacksOf are the buildpacks of a droplet as the event of its build shows them; nil
// for an image.
func buildpacksOf(d *cf.Droplet) any {
	if d.Lifecycle.Type == cf.LifecycleDocker {
		return nil
	}
	list := []audit.Data{}
	for _, b := range d.Buildpacks {
		e := audit.Data{"name": desire.Redact(b.Name), "buildpack_name": nil, "version": nil}
		if b.BuildpackName != "" {
			e["buildpack_name"] = b.BuildpackName
		}
		if b.Version != "" {
			e["version"] = b.Version
		}
		list = append(list, e)
	}
	return list
}

// recordFailed writes Cloud Controller's audit event of a build whose task failed
// for the reason. Its message is that of the log (StagingCompletionHandler#handle_failure).
func recordFailed(tx *store.Tx, b *cf.Build, reason string) error {
	app, err := store.Apps.Get(tx, b.AppGUID)
	if err != nil {
		return err
	}
	id, _, _ := strings.Cut(b.Error, " - ")
	return audit.App(tx, b.CreatedBy, audit.AppBuildFailed, app, audit.Data{"build_guid": b.GUID, "package_guid": b.PackageGUID,
		"error_id": id, "error_message": desire.FailureMessage(b.Error, reason)})
}

// readiness is the payload of an event of readiness, with Cloud Controller's names (CC:
// AppReadinessChangedController; tps: watcher.go).
type readiness struct {
	Instance string `json:"instance"`
	Index    int    `json:"index"`
	CellID   string `json:"cell_id"`
	Ready    bool   `json:"ready"`
	Version  string `json:"version"`
}

// recordReadiness writes Cloud Controller's audit event of an instance of an app that
// became ready or not ready, and gives the line that it writes to the app's log.
func recordReadiness(tx *store.Tx, was, next lrp.Actual) ([]lrp.LogLine, error) {
	if was.Ready == next.Ready || next.Stopping || was.Domain != lrp.DomainApps {
		return nil, nil
	}
	p, app, err := owner(tx, was)
	if store.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	r := readiness{Instance: was.InstanceGUID, Index: was.Index, CellID: was.CellID, Ready: next.Ready, Version: versionOf(p, was)}
	kind, text := audit.AppProcessReady, "Process became ready with guid %s payload: %s"
	if !r.Ready {
		kind, text = audit.AppProcessNotReady, "Process became not ready with guid %s payload: %s"
	}
	err = audit.App(tx, processActor(p), kind, app, audit.Data{"instance": r.Instance, "index": r.Index, "cell_id": r.CellID, "ready": r.Ready, "version": r.Version})
	if err != nil {
		return nil, err
	}
	payload, err := json.Marshal(r)
	return []lrp.LogLine{note(app.GUID, text, p.GUID, payload)}, err
}

// versionOf is the version of a process that an instance is of.
func versionOf(p *cf.Process, a lrp.Actual) string {
	return strings.TrimPrefix(a.ProcessGUID, p.GUID+"-")
}

// recordRescheduling writes Cloud Controller's audit event of an instance of an app that
// moves to another cell (CC: AppReschedulingController; tps: watcher.go).
func recordRescheduling(tx *store.Tx, a lrp.Actual) error {
	if a.Domain != lrp.DomainApps {
		return nil
	}
	p, app, err := owner(tx, a)
	if store.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return audit.App(tx, processActor(p), audit.AppProcessRescheduling, app, audit.Data{"instance": a.InstanceGUID, "index": a.Index,
		"cell_id": a.CellID, "reason": "Cell is being evacuated", "version": versionOf(p, a)})
}

// processActor is a process as the actor of what happens to its instances.
func processActor(p *cf.Process) cf.Actor {
	return cf.Actor{GUID: p.GUID, Type: "process", Name: p.Type}
}

// owner returns the process and the app of an instance.
func owner(tx *store.Tx, a lrp.Actual) (*cf.Process, *cf.App, error) {
	p, err := store.Processes.Get(tx, desire.CFProcess(a.ProcessGUID))
	if err != nil {
		return nil, nil, err
	}
	app, err := store.Apps.Get(tx, p.AppGUID)
	return p, app, err
}

// crash is the payload of a crash event, with Cloud Controller's names.
type crash struct {
	Instance  string `json:"instance"`
	Index     int    `json:"index"`
	CellID    string `json:"cell_id"`
	Reason    string `json:"reason"`
	Exit      string `json:"exit_description"`
	Count     int    `json:"crash_count"`
	Timestamp int64  `json:"crash_timestamp"` // nanoseconds
	Version   string `json:"version"`
}

// recordCrash writes Cloud Controller's two audit events of a crash, and gives
// the lines that it writes to the app's log. was is the row before the crash.
func recordCrash(tx *store.Tx, was, now lrp.Actual) ([]lrp.LogLine, error) {
	p, app, err := owner(tx, was)
	if err != nil {
		return nil, err
	}
	c := crash{Instance: was.InstanceGUID, Index: was.Index, CellID: was.CellID, Reason: string(lrp.Crashed), Exit: now.CrashReason,
		Count: now.CrashCount, Timestamp: tx.Now.UnixNano(), Version: versionOf(p, was)}
	byApp := map[string]any{"instance": c.Instance, "index": c.Index, "cell_id": c.CellID, "exit_description": c.Exit, "reason": c.Reason}
	err = audit.App(tx, cf.Actor{GUID: app.GUID, Type: "app", Name: app.Name}, audit.AppCrash, app, byApp)
	if err != nil {
		return nil, err
	}
	byProcess := map[string]any{"crash_count": c.Count, "crash_timestamp": c.Timestamp, "version": c.Version}
	for k, v := range byApp {
		byProcess[k] = v
	}
	err = audit.App(tx, processActor(p), audit.AppProcessCrash, app, byProcess)
	if err != nil {
		return nil, err
	}
	payload, err := json.Marshal(c)
	return []lrp.LogLine{
		note(app.GUID, `Process has crashed with type: "%s"`, p.Type),
		note(app.GUID, "App instance exited with guid %s payload: %s", app.GUID, payload),
	}, err
}

// recordUnplaced writes an event for an instance of an app that no cell takes.
// Cloud Controller has none: it shows the error in the stats alone.
func recordUnplaced(tx *store.Tx, a lrp.Actual) error {
	p, app, err := owner(tx, a)
	if store.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return audit.App(tx, processActor(p), audit.AppProcessUnplaced, app, audit.Data{"index": a.Index, "reason": a.PlacementError})
}

// recordWaiting shows at once that no cell takes a task of an app, and writes an event.
// Cloud Controller has none: it shows the reason when Diego gives up.
func recordWaiting(tx *store.Tx, guid, reason string) error {
	t, err := store.Tasks.Get(tx, guid)
	if store.IsNotFound(err) || err == nil && t.FailureReason == reason {
		return nil
	}
	if err != nil {
		return err
	}
	app, err := store.Apps.Get(tx, t.AppGUID)
	if err != nil {
		return err
	}
	t.FailureReason = lrp.Truncate(reason)
	if err := store.Tasks.Update(tx, t); err != nil {
		return err
	}
	return audit.App(tx, cf.Actor{GUID: t.GUID, Type: "task", Name: t.Name}, audit.AppTaskUnplaced, app, audit.Data{"task_guid": t.GUID, "reason": t.FailureReason})
}

// recordRefreshed writes an event of new files of bindings in a running
// instance. Cloud Controller has none: there they change with a start alone.
func recordRefreshed(tx *store.Tx, a Action, digest string) error {
	if a.Actual.Domain != lrp.DomainApps {
		return nil
	}
	p, app, err := owner(tx, a.Actual)
	if store.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return audit.App(tx, processActor(p), audit.AppProcessRefreshBindings, app, audit.Data{"index": a.Actual.Index, "instance": a.Actual.InstanceGUID,
		"cell_id": a.CellID, "revision": tx.Fingerprint([]byte(digest))})
}

// note is a line that Cloud Controller writes to an app's log.
func note(appGUID, format string, args ...any) lrp.LogLine {
	return lrp.LogLine{Target: lrp.LogTarget{GUID: appGUID, Source: "API", Instance: "0"}, At: time.Now(), Text: fmt.Appendf(nil, format, args...)}
}
