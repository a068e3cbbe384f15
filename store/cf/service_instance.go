package cf

import (
	"encoding/json"
	"time"
)

// The types of a ServiceInstance.
const (
	Managed      = "managed"       // a broker's
	UserProvided = "user-provided" // of what its user says
)

// ServiceInstance is a service that apps can be bound to.
type ServiceInstance struct {
	Resource
	Metadata
	Name          string
	Type          string // Managed or UserProvided
	SpaceGUID     string
	SharedSpaces  []string // GUIDs of further spaces whose apps may use it
	Tags          []string
	LastOperation LastOperation

	// Of one that is user-provided.
	Credentials     json.RawMessage // an object as it was given; nil for none; sealed at rest
	SyslogDrainURL  string          // sealed at rest: it may hold a password
	RouteServiceURL string          // likewise

	// Of one that is managed.
	PlanGUID           string
	DashboardURL       string
	MaintenanceVersion string          // "" for none
	BrokerMetadata     json.RawMessage // broker_provided_metadata; nil for none
}

// The types of a LastOperation.
const (
	OpCreate = "create"
	OpUpdate = "update"
	OpDelete = "delete"
)

// The states of a LastOperation. OpInitial is before the broker was asked: the
// operation has a job that is PROCESSING.
const (
	OpInitial    = "initial"
	OpInProgress = "in progress"
	OpSucceeded  = "succeeded"
	OpFailed     = "failed"
)

// LastOperation is the last change of a service instance or a binding, in
// Cloud Controller's words.
type LastOperation struct {
	Type            string    `json:"type"`
	State           string    `json:"state"`
	Description     string    `json:"description,omitempty"` // for people
	BrokerOperation string    `json:"broker_operation,omitempty"`
	CreatedAt       time.Time `json:"created_at"`
	UpdatedAt       time.Time `json:"updated_at"`
}

// Is reports whether the operation is of a type and in one of the states.
func (o LastOperation) Is(kind string, states ...string) bool {
	for _, s := range states {
		if o.Type == kind && o.State == s {
			return true
		}
	}
	return false
}

// InProgress reports whether the operation has neither succeeded nor failed.
func (o LastOperation) InProgress() bool { return o.State == OpInitial || o.State == OpInProgress }

// Begin is a new operation that begins at a time.
func Begin(kind, state string, at time.Time) LastOperation {
	return LastOperation{Type: kind, State: state, CreatedAt: at, UpdatedAt: at}
}
