package reconcile

import (
	"cupola/runtime/lrp"
	"cupola/store"
)

// stillWanted tells whether an instance that was found missing still is
// desired: where its domain is stale nobody would end it.
func stillWanted(tx *store.Tx, a lrp.Actual) (bool, error) {
	if lrp.Derived(a.Domain) {
		return true, nil
	}
	d, err := store.BBSDesiredKeys.Get(tx, a.ProcessGUID)
	if store.IsNotFound(err) {
		return false, nil
	}
	return err == nil && a.Index < d.Instances, err
}

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
	return tx.ChangeBBSTask(row, change)
}

// settleBBSTask completes a task of the BBS. What becomes of it then is the
// BBS' business.
func settleBBSTask(tx *store.Tx, t lrp.Task, o outcome) error {
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
