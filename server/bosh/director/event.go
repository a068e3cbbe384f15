package director

import (
	"cupola/store"
	"cupola/store/cf"
)

// The objects of events, BOSH's words.
const (
	ofDeployment = "deployment"
	ofInstance   = "instance"
	ofDisk       = "disk"
)

// happened is what a step does to an instance, for the events.
type happened struct {
	Action string
	Name   string // of the instance
	Ended  bool
	Error  string
}

// instanceName is the name that events have of an instance.
func instanceName(r *cf.BOSHInstance) string { return r.Group + "/" + r.GUID }

// action is BOSH's word for what the task does to an instance.
func (s *step) action(i *item) string {
	switch {
	case s.runs(i):
		return "run"
	case i.Goal == cf.BOSHGone:
		return "delete"
	case i.goal() == cf.BOSHHalted:
		return "stop"
	case Kind(s.Task.Kind) == Deploy && i.was.Digest == "":
		return "create"
	case Kind(s.Task.Kind) == Deploy:
		return "update"
	}
	return s.Task.Kind
}

// record adds the events of what a step did to instances.
func record(tx *store.Tx, t *cf.BOSHTask, all []happened) error {
	for _, h := range all {
		err := store.BOSHEvents.End(tx, t.Number, ofInstance, h.Name, h.Error)
		if !h.Ended {
			err = store.BOSHEvents.Insert(tx, &cf.BOSHEvent{User: t.User, Action: h.Action, ObjectType: ofInstance, ObjectName: h.Name, Task: t.Number, Deployment: t.DeploymentName, Instance: h.Name})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// recordStart adds the event with which a task begins.
func recordStart(tx *store.Tx, t *cf.BOSHTask) error {
	action := "update"
	switch Kind(t.Kind) {
	case ExportRelease: // it changes nothing, and the director has no event of it
		return nil
	case Delete:
		action = "delete"
	case RunErrand:
		action = "run-errand"
	case Deploy:
		if _, err := store.BOSHDeployments.First(tx, store.Query{Where: map[string][]string{"names": {t.DeploymentName}}}); store.IsNotFound(err) {
			action = "create"
		} else if err != nil {
			return err
		}
	}
	return store.BOSHEvents.Insert(tx, &cf.BOSHEvent{User: t.User, Action: action, ObjectType: ofDeployment, ObjectName: t.DeploymentName, Task: t.Number, Deployment: t.DeploymentName})
}

// endTask writes a task that has ended, and the event of that.
func endTask(tx *store.Tx, t *cf.BOSHTask) error {
	failure := ""
	if t.State != cf.BOSHDone {
		failure = t.Result
	}
	if err := store.BOSHEvents.End(tx, t.Number, ofDeployment, t.DeploymentName, failure); err != nil {
		return err
	}
	return store.BOSHTasks.Update(tx, t)
}

// recordDisk adds the event of what is done to a disk, by a task or, without one, a user.
func recordDisk(tx *store.Tx, t *cf.BOSHTask, action string, d *cf.BOSHDisk, r *cf.BOSHInstance) error {
	e := &cf.BOSHEvent{User: t.User, Action: action, ObjectType: ofDisk, ObjectName: d.GUID, Task: t.Number, Deployment: d.DeploymentName}
	if r != nil {
		e.Instance = instanceName(r)
	}
	return store.BOSHEvents.Insert(tx, e)
}

// RecordSSH adds the event that a task set up, or cleaned up, the SSH session of an instance.
func RecordSSH(tx *store.Tx, t *cf.BOSHTask, action string, r *cf.BOSHInstance) error {
	name := instanceName(r)
	return store.BOSHEvents.Insert(tx, &cf.BOSHEvent{User: t.User, Action: action + " ssh", ObjectType: ofInstance, ObjectName: name, Task: t.Number, Deployment: t.DeploymentName, Instance: name})
}

// RecordRelease adds the event of what a user did to a release.
func RecordRelease(tx *store.Tx, user, action string, r *cf.BOSHRelease) error {
	return store.BOSHEvents.Insert(tx, &cf.BOSHEvent{User: user, Action: action, ObjectType: "release", ObjectName: r.Name + "/" + r.Version})
}
