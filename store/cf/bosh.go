package cf

import (
	"encoding/json"
	"time"
)

// BOSHDeployment is a deployment of BOSH's: what a manifest asked for.
type BOSHDeployment struct {
	Resource
	Name     string
	Version  int        // of its manifest; 0: none was deployed yet
	Manifest []byte     // of that version; its variables stand in it by their names
	Provides []byte     // the links that its jobs offer, JSON
	Consumes []BOSHLink // the links of other deployments that its jobs use
	Aliases  []byte     // the names in DNS that it gives, JSON
	Configs  []int      // the numbers of the BOSHConfigs that it was made with
}

// BOSHLink is a link that a deployment offers to others.
type BOSHLink struct {
	Deployment string
	Name       string // by which jobs ask for it; "" for any of the deployment
	Type       string
}

// UnmarshalJSON reads a link, or the name of a deployment that was written before
// links were.
func (l *BOSHLink) UnmarshalJSON(text []byte) error {
	if json.Unmarshal(text, &l.Deployment) == nil {
		return nil
	}
	type plain BOSHLink
	return json.Unmarshal(text, (*plain)(l))
}

// BOSHVariable is a value of a deployment's.
type BOSHVariable struct {
	Resource
	DeploymentGUID string
	Name           string
	Type           string
	Value          []byte // JSON
}

// BOSHPhase is where an instance is on its way up or down.
type BOSHPhase string

// The phases, in their order: nothing runs while it is stopped. Processes run
// from BOSHStarting on until BOSHStopping.
const (
	BOSHStopped   BOSHPhase = "stopped"
	BOSHPreStart  BOSHPhase = "pre-start"
	BOSHStarting  BOSHPhase = "starting"
	BOSHPostStart BOSHPhase = "post-start"
	BOSHRunning   BOSHPhase = "running"
	BOSHPreStop   BOSHPhase = "pre-stop"
	BOSHDraining  BOSHPhase = "draining"
	BOSHStopping  BOSHPhase = "stopping"
	BOSHPostStop  BOSHPhase = "post-stop"
)

// BOSHGoal is the desired state of an instance.
type BOSHGoal string

// The goals of an instance.
const (
	BOSHStarted BOSHGoal = "started"
	BOSHHalted  BOSHGoal = "stopped"
	BOSHGone    BOSHGoal = "gone"
)

// BOSHInstance is one instance of an instance group.
type BOSHInstance struct {
	Resource
	DeploymentGUID string
	Group          string
	Index          int
	AZ             string
	Lifecycle      string
	DiskGUID       string // of its persistent disk; "": it has none
	Goal           BOSHGoal
	Phase          BOSHPhase
	Since          time.Time // of the phase
	// Digest names the BOSHSpec that it runs, or ran last; "" before its first
	// start. Next names the desired one.
	Digest, Next string
	// Renew counts when it was asked to be restarted; Renewed is the count that it
	// was started with.
	Renew, Renewed int
	// TaskGUID is of the task that changes it, or did last; Chosen tells that it
	// is being changed, Canary that it is among the first.
	TaskGUID       string
	Chosen, Canary bool
	Failure        string // why it did not reach its goal
}

// UpToDate reports whether an instance has reached its goal.
func (i *BOSHInstance) UpToDate() bool {
	if i.Goal == BOSHHalted {
		return i.Phase == BOSHStopped && i.Failure == ""
	}
	return i.Goal == BOSHStarted && i.Phase == BOSHRunning && i.Digest == i.Next && i.Renew == i.Renewed && i.Failure == ""
}

// BOSHSpec is what an instance is made of; its GUID is the digest.
type BOSHSpec struct {
	Resource
	InstanceGUID string
	Text         []byte
	Blobs        []string // digests of the blobs that its containers have mounted
	Releases     []string // that it is from, as name/version; without release images
}

// BOSHCallState is where a call is.
type BOSHCallState string

// The states of a call.
const (
	BOSHCalling   BOSHCallState = "running"
	BOSHSucceeded BOSHCallState = "succeeded"
	BOSHFailed    BOSHCallState = "failed"
)

// BOSHCall is a run of a script of an instance's, or of a process of an errand.
type BOSHCall struct {
	Resource
	InstanceGUID string
	Phase        BOSHPhase // of the instance; or BOSHPostDeploy, BOSHErrand
	Digest       string    // of the spec that has the script
	Job          string
	Process      string
	Script       string
	Args         []string
	State        BOSHCallState
	Result       []byte
	Reason       string // of a failure
	EndedAt      time.Time
}

// Phases of calls that are not phases of an instance.
const (
	BOSHPostDeploy BOSHPhase = "post-deploy"
	BOSHErrand     BOSHPhase = "errand"
)

// BOSHTaskState is where a task is.
type BOSHTaskState string

// The states of a task, BOSH's words.
const (
	BOSHQueued     BOSHTaskState = "queued"
	BOSHProcessing BOSHTaskState = "processing"
	BOSHDone       BOSHTaskState = "done"
	BOSHError      BOSHTaskState = "error"
	BOSHCancelled  BOSHTaskState = "cancelled"
)

// BOSHTask is what somebody has asked a deployment to do.
type BOSHTask struct {
	Resource
	Number         int // from 1, of all deployments
	DeploymentName string
	Kind           string // a director.Kind
	User           string
	State          BOSHTaskState
	// Order is what was asked for, JSON.
	Order []byte
	// Plan is what came of it, JSON; empty until it was prepared.
	Plan      []byte
	Result    string
	StartedAt time.Time
	EndedAt   time.Time
}

// BOSHTaskEvent is a line of what a task has done.
type BOSHTaskEvent struct {
	Resource
	TaskGUID string
	Stage    string // "Updating instance"
	Subject  string // "nats/0 (canary)"
	State    string // started, finished, failed
	Detail   string
}

// BOSHDisk is a persistent disk. It outlives its instance and its deployment.
type BOSHDisk struct {
	Resource
	DeploymentName string
	Group          string
	Index          int
	AZ             string
	SizeMB         int
	OrphanedAt     time.Time // zero: it is an instance's
}
