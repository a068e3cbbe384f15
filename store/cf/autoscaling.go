package cf

import "time"

// ScalingPolicy is how an app scales by itself.
type ScalingPolicy struct {
	Resource
	AppGUID  string
	Policy   string    // JSON, in App Autoscaler's words
	RestsTo  time.Time // the app is not scaled by rules before that
	Schedule string    // the schedule that is active; "" for none
}

// ScalingType is what made an app scale, as App Autoscaler numbers it.
type ScalingType int

// The types.
const (
	ScalingDynamic  ScalingType = 0 // by a rule
	ScalingSchedule ScalingType = 1
)

// ScalingStatus is what became of a scaling, as App Autoscaler numbers it. Cupola keeps none that
// were ignored, 2.
type ScalingStatus int

// The states.
const (
	ScalingSucceeded ScalingStatus = 0
	ScalingFailed    ScalingStatus = 1
)

// ScalingEvent is an entry of an app's scaling history.
type ScalingEvent struct {
	Resource
	AppGUID string
	Type    ScalingType
	Status  ScalingStatus
	Old     int // instances
	New     int
	Reason  string // what asked for it
	Message string // what else decided
	Error   string // why it failed
}

// ScalingInstance is a service instance of the autoscaler's service. Its GUID is that of the
// platform's service instance.
type ScalingInstance struct {
	Resource
	Request       string // what was asked for, to tell the same from another
	DefaultPolicy string // of apps that are bound without one, in JSON; "" for none
}

// ScalingBinding is an app that is bound to a ScalingInstance.
type ScalingBinding struct {
	Resource
	InstanceGUID string
	AppGUID      string
	Request      string // as ScalingInstance has it
	Password     string // for custom metrics, sealed at rest; "" where only certificates are accepted
}
