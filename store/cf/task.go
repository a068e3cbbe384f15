package cf

// TaskState is the state of an app's task.
type TaskState string

// The states of a task.
const (
	TaskPending   TaskState = "PENDING"
	TaskRunning   TaskState = "RUNNING"
	TaskSucceeded TaskState = "SUCCEEDED"
	TaskCanceling TaskState = "CANCELING"
	TaskFailed    TaskState = "FAILED"
)

// Task is a command that runs once in a container of an app's droplet.
type Task struct {
	Resource
	Metadata
	AppGUID       string
	DropletGUID   string
	SequenceID    int // 1, 2, … in the app
	Name          string
	Command       string // sealed at rest
	State         TaskState
	MemoryMB      int
	DiskMB        int
	LogRateLimit  int64
	User          string
	FailureReason string
	Env           map[string]string // app env at the time, sealed at rest
	Placement     Placement         // of the space at the time
	BuildGUID     string            // that waits for this release command; "" for any other task
}
