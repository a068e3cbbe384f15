package reconcile

import (
	"cupola/runtime/lrp"
	"cupola/store"
)

// maxResult is Diego's limit of a Task's result.
const maxResult = 50 << 10

// changeBBSTask changes the task of the BBS that t runs, if there still is one
// that waits for it.
func changeBBSTask(tx *store.Tx, t lrp.Task, change func(*store.BBSTask)) error {
	row, err := store.BBSTasks.First(tx, store.Query{Where: map[string][]string{"run_guids": {t.GUID}}})
	if store.IsNotFound(err) {
		return nil
	}
	if err != nil || row.State != lrp.TaskPending && row.State != lrp.TaskRunning {
		return err
	}
	return store.BBSTasks.Change(tx, row, change)
}

// recordBBSTask completes a task of the BBS.
func recordBBSTask(tx *store.Tx, t lrp.Task, o outcome) error {
	return changeBBSTask(tx, t, func(row *store.BBSTask) {
		row.State, row.CellID, row.FirstCompletedAt = lrp.TaskCompleted, "", tx.Now
		row.Failed, row.FailureReason = o.failed || o.fault != "", lrp.Truncate(o.reason+o.fault)
		switch {
		case row.Failed:
		case len(o.result) > maxResult:
			row.Failed, row.FailureReason = true, "failed to fetch result"
		default:
			row.Result = o.result
		}
	})
}
