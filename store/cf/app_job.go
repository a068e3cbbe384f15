package cf

import "time"

// AppJob is a command of an app that runs as a task, by schedules or when asked for.
type AppJob struct {
	Resource
	AppGUID  string
	Name     string
	Command  string // sealed at rest
	MemoryMB int    // 0: as other tasks
	DiskMB   int    // likewise
	Timeout  int    // seconds, after which a run is cancelled
	State    string // of its last run, or JobPending
}

// JobPending is the state of a job of an app that never ran.
const JobPending = "PENDING"

// JobSchedule says when a job of an app runs.
type JobSchedule struct {
	Resource
	JobGUID    string
	Expression string // of cron
	Enabled    bool
	NextAt     time.Time // the first time that is not yet dealt with
}

// ExecutionState is the state of a run of a job of an app.
type ExecutionState string

// The states of a run.
const (
	ExecutionRunning   ExecutionState = "RUNNING"
	ExecutionSucceeded ExecutionState = "SUCCEEDED"
	ExecutionFailed    ExecutionState = "FAILED"
	ExecutionSkipped   ExecutionState = "SKIPPED" // was due, and did not start
)

// JobExecution is a run of a job of an app.
type JobExecution struct {
	Resource
	JobGUID      string
	ScheduleGUID string // "": it was asked for
	TaskGUID     string // "": there was none
	TaskName     string
	State        ExecutionState
	Message      string
	ScheduledAt  time.Time // zero: it was asked for
	StartedAt    time.Time // zero: it did not start
	EndedAt      time.Time // zero: it has not ended
}
