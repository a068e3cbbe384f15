package autoscaling

import (
	"fmt"

	"cupola/server/authz"
	"cupola/server/control"
	"cupola/server/control/apps"
	"cupola/server/control/audit"
	"cupola/server/control/change"
	"cupola/store"
	"cupola/store/cf"
)

// keptEvents is how long an app's history is.
const keptEvents = 500

// Actor is who scales, in audit events.
var Actor = &authz.Actor{GUID: "autoscaler", Name: "autoscaler", Type: "client"}

// subject is an app with a policy.
type subject struct {
	row       *cf.ScalingPolicy
	policy    *Policy
	app       *cf.App
	instances int // of all its web processes: a deployment has several
	asleep    bool
}

// limits are those that hold now: a schedule's, or the policy's own.
func (s *subject) limits(of *Limits) (lowest, highest int) {
	if of != nil {
		return of.Min, of.Max
	}
	return s.policy.Min, s.policy.Max
}

// scaling is a change that is asked for.
type scaling struct {
	kind    cf.ScalingType
	reason  string
	change  func(instances int) int
	lowest  int
	highest int
}

// do scales an app's web process, and adds to its history. It reports whether there was anything
// to change.
func (w scaling) do(c *control.Session, app *cf.App) (scaled bool, err error) {
	p, err := apps.Process(c, app, "web")
	if err != nil {
		return false, err
	}
	instances, message := within(w.change(p.Instances), w.lowest, w.highest)
	if instances == p.Instances {
		return false, nil
	}
	e := &cf.ScalingEvent{AppGUID: app.GUID, Type: w.kind, Status: cf.ScalingSucceeded, Old: p.Instances, New: instances, Reason: w.reason, Message: message}
	if err := apps.ScaleAs(c, app, p, apps.Scale{Instances: change.To(instances)}, audit.Data{"instances": instances}); err != nil {
		return false, err
	}
	c.Note(app, "Autoscaler: %d to %d instances, %s", e.Old, e.New, cause(e))
	return true, record(c.Tx, e)
}

// cause is what an entry says of why, in one text.
func cause(e *cf.ScalingEvent) string {
	if e.Message == "" {
		return e.Reason
	}
	return fmt.Sprintf("%s, %s", e.Reason, e.Message)
}

// record adds an entry to an app's history, and forgets the oldest.
func record(tx *store.Tx, e *cf.ScalingEvent) error {
	if err := store.ScalingEvents.Insert(tx, e); err != nil {
		return err
	}
	return store.ScalingEvents.Forget(tx, e.AppGUID, keptEvents)
}

// recordFailure adds to the history that a scaling failed. One that goes on failing for the same
// cause has one entry.
func (w scaling) recordFailure(c *control.Session, s *subject, why *cf.Error) error {
	e := &cf.ScalingEvent{AppGUID: s.app.GUID, Type: w.kind, Status: cf.ScalingFailed, Old: s.instances, New: -1, Reason: w.reason,
		Error: "failed to set app instances: " + why.Detail}
	last, err := store.ScalingEvents.First(c.Tx, store.Query{Where: map[string][]string{"app_guids": {s.app.GUID}}, Desc: true})
	if err != nil && !store.IsNotFound(err) {
		return err
	}
	if err == nil && last.Status == e.Status && last.Reason == e.Reason && last.Error == e.Error {
		return nil
	}
	c.Note(s.app, "Autoscaler: not scaled, %s: %s", e.Reason, why.Detail)
	return record(c.Tx, e)
}
