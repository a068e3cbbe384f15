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
var BBSTasks = &Table[BBSTask]{
	name: "bbs_tasks", singular: "Task",
	columns: "guid, run_guid, domain, state, cell_id, created_at, updated_at, first_completed_at, failed, failure_reason, result, rejections, rejection_reason, callback, definition",
	fields: func(v *BBSTask, k *sealer) []any {
		return []any{&v.GUID, &v.RunGUID, &v.Domain, &v.State, &v.CellID, timeColumn{&v.CreatedAt}, timeColumn{&v.UpdatedAt},
			timeColumn{&v.FirstCompletedAt}, &v.Failed, &v.FailureReason, sealedBytes{k, &v.Result},
			&v.Rejections, &v.RejectionReason, &v.Callback, sealedBytes{k, &v.Definition}}
	},
	resource: func(*BBSTask) *cf.Resource { return nil },
	filters: map[string]string{
		"guids":     "guid",
		"run_guids": "run_guid",
		"domains":   "domain",
		"cells":     "cell_id",
		"states":    "state",
	},
}

// InsertBBSTask adds a task, with the transaction's time; IsTaken when there is
// one of its GUID.
func (tx *Tx) InsertBBSTask(t *BBSTask) error {
	t.CreatedAt, t.UpdatedAt = tx.Now, tx.Now
	if err := BBSTasks.Insert(tx, t); err != nil {
		return err
	}
	tx.note(Change{After: t})
	return nil
}

// ChangeBBSTask writes what change makes of a task that was read in this
// transaction, with the transaction's time.
func (tx *Tx) ChangeBBSTask(t *BBSTask, change func(*BBSTask)) error {
	was := *t
	change(t)
	t.UpdatedAt = tx.Now
	if err := BBSTasks.Update(tx, t); err != nil {
		return err
	}
	tx.note(Change{Before: &was, After: t})
	return nil
}

// DeleteBBSTask removes a task that was read in this transaction.
func (tx *Tx) DeleteBBSTask(t *BBSTask) error {
	if err := BBSTasks.Delete(tx, t.GUID); err != nil {
		return err
	}
	tx.note(Change{Before: t})
	return nil
}
