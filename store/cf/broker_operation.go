package cf

import "time"

// BrokerOperation is how far the work of a job, or the removal of an orphan,
// has come with its broker. CreatedAt is when it began.
type BrokerOperation struct {
	Resource
	JobGUID    string // "" for an orphan
	BrokerGUID string // "" when what the job is about was gone when it began
	Phase      BrokerPhase
	DueAt      time.Time // when the broker is asked next
	Attempts   int       // how often it was asked in this phase
	Operation  string    // the broker's name of an asynchronous operation
	Orphan     *Orphan
}

// BrokerPhase is what is asked of a broker next.
type BrokerPhase string

// The phases of an operation: it is asked for, and then asked after until it
// has ended.
const (
	PhaseSend BrokerPhase = "send"
	PhasePoll BrokerPhase = "poll"
)

// Orphan is a service instance or binding that a broker may have and the
// platform does not want.
type Orphan struct {
	BrokerGUID   string
	OfferingID   string // the broker's id
	PlanID       string // the broker's id
	InstanceGUID string
	BindingGUID  string // "" for an instance
	Failures     int    // of its removal; the next attempt waits longer with each
}
