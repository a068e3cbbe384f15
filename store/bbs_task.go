package store

import (
	"time"

	"cupola/runtime/lrp"
	"cupola/store/cf"
)

// BBSTask is a Task that a client of the BBS asked for.
type BBSTask struct {
	GUID             string
	RunGUID          string // of the lrp.Task that runs it: a GUID of the client's may come again
	Domain           string
	State            lrp.TaskState // also TaskResolving
	CellID           string        // while it runs
	CreatedAt        time.Time
	UpdatedAt        time.Time
	FirstCompletedAt time.Time // zero: not yet
	Failed           bool
	FailureReason    string
	Result           []byte
	Rejections       int
	RejectionReason  string
	Callback         bool   // the definition has the URL of one
	Definition       []byte // Diego's protobuf message
}

// BBSTasks are the Tasks of the BBS.
var BBSTasks = bbsTasks{&Table[BBSTask]{table{
	name: "bbs_tasks", singular: "Task",
	columns: "guid, run_guid, domain, state, cell_id, created_at, updated_at, first_completed_at, failed, failure_reason, result, rejections, rejection_reason, callback, definition",
	fields: fieldsOf(func(v *BBSTask, k *sealer) []any {
		return []any{&v.GUID, &v.RunGUID, &v.Domain, &v.State, &v.CellID, timeColumn{&v.CreatedAt}, timeColumn{&v.UpdatedAt},
			timeColumn{&v.FirstCompletedAt}, &v.Failed, &v.FailureReason, sealedBytes{k, &v.Result},
			&v.Rejections, &v.RejectionReason, &v.Callback, sealedBytes{k, &v.Definition}}
	}),
	resource: resourceOf(func(*BBSTask) *cf.Resource { return nil }),
	filters: map[string]string{
		"guids":     "guid",
		"run_guids": "run_guid",
		"domains":   "domain",
		"cells":     "cell_id",
		"states":    "state",
	},
}}}

type bbsTasks struct{ *Table[BBSTask] }

// Insert adds a task, with the transaction's time; IsTaken when there is one of
// its GUID.
func (t bbsTasks) Insert(tx *Tx, task *BBSTask) error {
	task.CreatedAt, task.UpdatedAt = tx.Now, tx.Now
	if err := t.Table.Insert(tx, task); err != nil {
		return err
	}
	tx.note(Change{After: task})
	return nil
}

// Change writes what change makes of a task that was read in this transaction,
// with the transaction's time.
func (t bbsTasks) Change(tx *Tx, task *BBSTask, change func(*BBSTask)) error {
	was := *task
	change(task)
	task.UpdatedAt = tx.Now
	if err := t.Update(tx, task); err != nil {
		return err
	}
	tx.note(Change{Before: &was, After: task})
	return nil
}

// Delete removes a task that was read in this transaction.
func (t bbsTasks) Delete(tx *Tx, task *BBSTask) error {
	if err := t.Table.Delete(tx, task.GUID); err != nil {
		return err
	}
	tx.note(Change{Before: task})
	return nil
}
