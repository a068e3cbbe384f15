package cf

// Revision is what an app was when it was started: droplet, environment and
// commands.
type Revision struct {
	Resource
	Metadata
	AppGUID     string
	Version     int // 1, 2, … in the app
	DropletGUID string
	Description string
	Env         map[string]string // sealed at rest
	Commands    map[string]string // process type → command; "" for the droplet's
	Sidecars    []Sidecar
}

// Deployment rolls an app to a droplet or revision.
type Deployment struct {
	Resource
	Metadata
	AppGUID         string
	Strategy        string // "rolling"
	StatusValue     string // ACTIVE, FINALIZED
	StatusReason    string // DEPLOYING, DEPLOYED, CANCELING, CANCELED, SUPERSEDED
	StatusSince     int64  // unix seconds
	DropletGUID     string
	PreviousDroplet string
	RevisionGUID    string
	RevisionVersion int
	MaxInFlight     int
	NewProcesses    []DeploymentProcess
}

// DeploymentProcess is a process that a deployment made.
type DeploymentProcess struct {
	GUID string `json:"guid"`
	Type string `json:"type"`
}
