package lrp

import "time"

// TaskState is the state of a Task, in Diego's words.
type TaskState string

// The states of a Task. While it is Resolving, its owner processes the result;
// then the Task is deleted. For builds and apps' tasks this is momentary.
const (
	TaskPending   TaskState = "PENDING"
	TaskRunning   TaskState = "RUNNING"
	TaskCompleted TaskState = "COMPLETED"
	TaskResolving TaskState = "RESOLVING"
)

// MaxTaskRejections is how often a task may fail to be placed: Diego's
// max_retries.
const MaxTaskRejections = 3

// Task runs once. What it runs is derived from its owner when it is placed.
type Task struct {
	GUID            string // the GUID of its build or app task
	Domain          string
	State           TaskState
	CellID          string
	CreatedAt       time.Time
	UpdatedAt       time.Time
	Failed          bool
	FailureReason   string
	Result          []byte // of RunInfo.ResultFile
	Outputs         []Blob
	Rejections      int
	RejectionReason string
	Cancelled       bool // the owner no longer wants it
}

// Blob is an output that was kept.
type Blob struct {
	Name   string
	Digest string // sha256, hex
	Size   int64  // bytes
}
