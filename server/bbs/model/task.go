package model

import (
	"encoding/json"
	"time"

	"cupola/runtime/lrp"
	"cupola/server/bbs/bbspb"
	"cupola/store"
)

var taskStates = map[lrp.TaskState]bbspb.TaskState{
	lrp.TaskPending:   bbspb.TaskState_TASK_STATE_PENDING,
	lrp.TaskRunning:   bbspb.TaskState_TASK_STATE_RUNNING,
	lrp.TaskCompleted: bbspb.TaskState_TASK_STATE_COMPLETED,
	lrp.TaskResolving: bbspb.TaskState_TASK_STATE_RESOLVING,
}

// TaskMessage is a Task as a message, with the definition that it was given.
func TaskMessage(t *store.BBSTask, d *bbspb.TaskDefinition) *bbspb.Task {
	return &bbspb.Task{
		Definition: d, TaskGuid: t.GUID, Domain: t.Domain, State: taskStates[t.State], CellId: t.CellID,
		CreatedAt: nanoseconds(t.CreatedAt), UpdatedAt: nanoseconds(t.UpdatedAt), FirstCompletedAt: nanoseconds(t.FirstCompletedAt),
		Result: string(t.Result), Failed: t.Failed, FailureReason: t.FailureReason,
		RejectionCount: int32(t.Rejections), RejectionReason: t.RejectionReason,
	}
}

// nanoseconds since 1970; 0 for the zero time.
func nanoseconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

// callback is what a completion callback is sent; the names are Diego's.
type callback struct {
	TaskGUID      string `json:"task_guid"`
	Failed        bool   `json:"failed"`
	FailureReason string `json:"failure_reason"`
	Result        string `json:"result"`
	Annotation    string `json:"annotation,omitempty"`
	CreatedAt     int64  `json:"created_at"`
}

// Callback is what the completion callback of a Task is sent.
func Callback(t *store.BBSTask, d *bbspb.TaskDefinition) ([]byte, error) {
	return json.Marshal(callback{TaskGUID: t.GUID, Failed: t.Failed, FailureReason: t.FailureReason, Result: string(t.Result),
		Annotation: d.GetAnnotation(), CreatedAt: nanoseconds(t.CreatedAt)})
}
