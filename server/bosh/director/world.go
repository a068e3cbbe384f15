package director

import (
	"time"

	"cupola/server/bosh/agent"
	"cupola/store/cf"
)

// world is all that a step depends on.
type world struct {
	Now       time.Time
	Task      cf.BOSHTask // processing
	Plan      taskPlan
	Instances []instance // by group and index
	Disks     diskFaults
}

// diskFaults are what went wrong with the disks of instances, by their GUIDs.
type diskFaults struct {
	lacking map[string]error // one could not be made
	small   map[string]error // one could not grow; the instance runs with it as it is
}

// instance is an instance with its observed state.
type instance struct {
	cf.BOSHInstance
	Spec  *agent.Spec   // of Digest; nil before its first start
	Next  *agent.Spec   // of the digest of that name
	Fault string        // why Spec or Next is nil though there is one
	Calls []cf.BOSHCall // oldest first
	// Running is true if all its processes run and are ready, Empty if nothing
	// of them is left.
	Running, Empty bool
	// RunsSince is when the last of its processes began to run, and Crashed whether one has
	// crashed since the instance was started.
	RunsSince time.Time
	Crashed   bool
	// Unmade says why the container of a process was not made; "" for no reason.
	Unmade string
}

// changes is what a step changes.
type changes struct {
	Instances []cf.BOSHInstance // as desired
	Delete    []cf.BOSHInstance
	Calls     []cf.BOSHCall // to be made
	Forget    []string      // GUIDs of calls
	Discard   []string      // volumes, before all else
	Orphans   []string      // GUIDs of disks that instances no longer have
	Copies    []diskCopy    // to be made before all else
	Events    []cf.BOSHTaskEvent
	Happened  []happened // the same, for the events of deployments
	Task      *cf.BOSHTask
	// Wake is when to look again; zero: when something changes.
	Wake time.Time
}

// diskCopy is a copy of an instance's persistent disk that will replace it.
type diskCopy struct {
	Instance cf.BOSHInstance // at rest
	To       string          // GUID
}

// empty reports whether there is nothing to write.
func (c changes) empty() bool {
	return len(c.Instances)+len(c.Delete)+len(c.Calls)+len(c.Forget)+len(c.Discard)+len(c.Orphans)+len(c.Copies)+len(c.Events) == 0 && c.Task == nil
}

// event notes what the task does to an instance.
func (s *step) event(stage string, i *item, state, detail string) {
	s.out.Events = append(s.out.Events, cf.BOSHTaskEvent{TaskGUID: s.Task.GUID, Stage: stage, Subject: subject(i), State: state, Detail: detail})
	s.out.Happened = append(s.out.Happened, happened{Action: s.action(i), Name: instanceName(&i.BOSHInstance), Ended: state != "started", Error: detail})
}

// wakeAt schedules the next step at the latest then.
func (s *step) wakeAt(at time.Time) {
	if s.out.Wake.IsZero() || at.Before(s.out.Wake) {
		s.out.Wake = at
	}
}
