package cf

import "time"

// The strategies of a Deployment.
const (
	Rolling = "rolling"
	Canary  = "canary"
)

// DeploymentState is where a deployment is: Cloud Controller's own, of which
// the status is what users see.
type DeploymentState string

// The states of a deployment.
const (
	Deploying DeploymentState = "DEPLOYING"
	Prepaused DeploymentState = "PREPAUSED" // on the way to a step of a canary deployment
	Paused    DeploymentState = "PAUSED"
	Deployed  DeploymentState = "DEPLOYED"
	Canceling DeploymentState = "CANCELING"
	Canceled  DeploymentState = "CANCELED"
)

// The values of a deployment's status.
const (
	Active    = "ACTIVE"
	Finalized = "FINALIZED"
)

// Superseded is the reason of a deployment's status that another one took the
// place of. The other reasons are names of states.
const Superseded = "SUPERSEDED"

// Deployment replaces what an app's web process runs without a pause.
type Deployment struct {
	Resource
	Metadata
	AppGUID           string
	Strategy          string
	State             DeploymentState
	StatusValue       string
	StatusReason      string
	StatusSince       time.Time
	LastHealthy       time.Time // when it last had room for more instances; zero: never
	Error             string    // why it does not get on; "" for nothing
	DropletGUID       string
	PreviousDroplet   string // "" for none
	RevisionGUID      string // "" for none
	RevisionVersion   int
	Options           DeploymentOptions
	CanaryStep        int // from 1; 0 for a rolling deployment
	OriginalInstances int // of the web process before
	WebProcess        string
	NewProcesses      []DeploymentProcess
}

// DeploymentOptions are what a deployment was asked for with. What is zero or
// nil was not.
type DeploymentOptions struct {
	MaxInFlight  int // at least 1
	WebInstances *int
	MemoryMB     int
	DiskMB       int
	LogRateLimit *int64
	Weights      []int // of the steps of a canary deployment, in percent
}

// DeploymentProcess is a process that a deployment made.
type DeploymentProcess struct {
	GUID string `json:"guid"`
	Type string `json:"type"`
}

// Become changes the state. reason is the status' reason, now its time if it
// is another one.
func (d *Deployment) Become(s DeploymentState, reason string, now time.Time) {
	value := Active
	if s == Deployed || s == Canceled {
		value = Finalized
	}
	if d.StatusValue != value || d.StatusReason != reason {
		d.StatusSince = now
	}
	d.State, d.StatusValue, d.StatusReason = s, value, reason
}

// Progresses reports whether the deployment keeps an app's web processes from
// being changed.
func (d *Deployment) Progresses() bool {
	return d.State == Deploying || d.State == Prepaused || d.State == Paused
}
