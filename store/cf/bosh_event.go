package cf

// BOSHEvent is something that was done to a deployment, or to what belongs to one.
type BOSHEvent struct {
	Resource
	Number int // from 1, of all deployments
	Parent int // the number of the event with which the action began; 0: this is one
	User   string
	Action string // BOSH's words: create, update, delete, start, stop, recreate, run, attach, orphan, setup ssh …
	// ObjectType and ObjectName say what it was done to: deployment, instance, disk or
	// release; instances are named group/GUID.
	ObjectType, ObjectName string
	Task                   int // 0: none
	Deployment, Instance   string
	Error                  string // why the action failed; of events that have a parent
}
