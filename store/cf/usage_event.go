package cf

// AppUsageEvent tells that an app, a task or a build began, changed or ended to
// use something.
type AppUsageEvent struct {
	Resource
	State, PreviousState         string // STARTED, TASK_STOPPED, …
	AppGUID, AppName             string
	ProcessGUID, ProcessType     string // "" of tasks and builds
	SpaceGUID, SpaceName         string
	OrgGUID                      string
	BuildpackGUID, BuildpackName string
	TaskGUID, TaskName           string
	MemoryMB, PreviousMemoryMB   int // of each instance
	Instances, PreviousInstances int
}

// ServiceUsageEvent tells that a service instance was CREATED, UPDATED (it has
// another name or plan) or DELETED.
type ServiceUsageEvent struct {
	Resource
	State                      string
	SpaceGUID, SpaceName       string
	OrgGUID                    string
	InstanceGUID, InstanceName string
	InstanceType               string // managed_service_instance, user_provided_service_instance
	PlanGUID, PlanName         string // "" of a user's own, as what follows
	OfferingGUID, OfferingName string
	BrokerGUID, BrokerName     string
}
