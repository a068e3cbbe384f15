package cf

import "time"

// Stack is a root filesystem for apps and staging.
type Stack struct {
	Resource
	Metadata
	Name        string
	Description string
	State       string // ACTIVE, RESTRICTED, DEPRECATED, DISABLED (RFC-0045)
	StateReason string
	Compat      string // what CF_STACK says; "" : the name
	Default     bool
}

// Buildpack is an admin buildpack.
type Buildpack struct {
	Resource
	Metadata
	Name      string
	Stack     string // "" : any
	State     string // AWAITING_UPLOAD or READY
	Position  int    // 1, 2, …
	Enabled   bool
	Locked    bool
	Lifecycle string // "buildpack"
	Filename  string
	Digest    string // sha256 of the zip, hex
	System    string // the name of the built-in it is; "" for an uploaded one
}

// JobState is the state of a job.
type JobState string

// The states of a job.
const (
	JobProcessing JobState = "PROCESSING"
	JobPolling    JobState = "POLLING"
	JobComplete   JobState = "COMPLETE"
	JobFailed     JobState = "FAILED"
)

// Job is the work behind a 202.
type Job struct {
	Resource
	Operation    string // "app.delete", …
	ResourceGUID string
	ResourceType string // "apps", …: for the link
	State        JobState
	Errors       []JobError
	Warnings     []string
	Input        string // JSON of what the operation needs
}

// JobPart is a part of a job's work that is done in one transaction.
type JobPart struct {
	ID      int64
	AppGUID string // the app that it changes
	Input   string // an app manifest
}

// JobError is an error of a failed job, as the API shows it.
type JobError struct {
	Code   int    `json:"code"`
	Title  string `json:"title"`
	Detail string `json:"detail"`
}

// Event is an audit event. Its UpdatedAt stays zero.
type Event struct {
	Resource
	Type       string // "audit.app.create", …
	Actor      Actor
	TargetGUID string
	TargetType string // "app", …
	TargetName string
	SpaceGUID  string
	OrgGUID    string
	Data       map[string]any
}

// FeatureFlag is a feature flag that was changed from its default.
type FeatureFlag struct {
	Name               string
	Enabled            bool
	CustomErrorMessage string
	UpdatedAt          time.Time // zero: never
}

// SecurityGroup is a set of egress rules.
type SecurityGroup struct {
	Resource
	Name          string
	Rules         []SecurityRule
	GlobalRunning bool
	GlobalStaging bool
	RunningSpaces []string
	StagingSpaces []string
}

// SecurityRule is one rule of a security group.
type SecurityRule struct {
	Protocol    string `json:"protocol"`
	Destination string `json:"destination"` // IP, CIDR, range; comma-separated
	Ports       string `json:"ports,omitempty"`
	Type        *int   `json:"type,omitempty"`
	Code        *int   `json:"code,omitempty"`
	Description string `json:"description,omitempty"`
	Log         bool   `json:"log,omitempty"`
}

// EnvGroup is an environment variable group: "running" or "staging".
type EnvGroup struct {
	Name string
	Vars map[string]string // sealed at rest

	UpdatedAt time.Time // zero: never
}
