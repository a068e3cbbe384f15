package cf

import "time"

// AppJobKind is what the runs of a job of an app are. The two are different things in the
// scheduler's API.
type AppJobKind string

// The kinds of jobs.
const (
	KindJob  AppJobKind = "job"  // tasks of a command
	KindCall AppJobKind = "call" // POST requests to a URL
)

// AppJob is what runs for an app by schedules or when asked for.
type AppJob struct {
	Resource
	AppGUID    string
	Kind       AppJobKind
	Name       string
	Command    string // of KindJob, as the two below; sealed at rest
	MemoryMB   int    // 0: as other tasks
	DiskMB     int    // likewise
	URL        string // of KindCall, as the one below; sealed at rest
	AuthHeader string // what requests have as Authorization; sealed at rest
	Timeout    int    // seconds, after which a run is cancelled
	State      string // of its last run, or JobPending
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
	TaskGUID     string // "": there was none, or it is a run of a call
	TaskName     string
	State        ExecutionState
	Message      string
	ScheduledAt  time.Time // zero: it was asked for
	StartedAt    time.Time // zero: it did not start; of a call: its request was not made yet
	EndedAt      time.Time // zero: it has not ended
}
