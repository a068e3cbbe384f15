package store

import (
	"cupola/runtime/lrp"
	"cupola/store/cf"
)

// LRPTasks are what runs once, from when it is wanted until its owner has the
// result.
var LRPTasks = lrpTasks{&Table[lrp.Task]{table{
	name: "lrp_tasks", singular: "Task",
	columns: "guid, domain, state, cell_id, created_at, updated_at, failed, failure_reason, result, outputs, rejections, rejection_reason, cancelled",
	fields: fieldsOf(func(v *lrp.Task, k *sealer) []any {
		return []any{&v.GUID, &v.Domain, &v.State, &v.CellID, timeColumn{&v.CreatedAt}, timeColumn{&v.UpdatedAt},
			&v.Failed, &v.FailureReason, sealedColumn{k, &v.Result}, jsonColumn{&v.Outputs},
			&v.Rejections, &v.RejectionReason, &v.Cancelled}
	}),
	resource: resourceOf(func(*lrp.Task) *cf.Resource { return nil }),
	filters: map[string]string{
		"guids":   "lrp_tasks.guid",
		"domains": "domain",
		"states":  "state",
	},
	orders: map[string]string{"created_at": "created_at"},
}}}

type lrpTasks struct{ *Table[lrp.Task] }

// Insert adds a row, with the transaction's time; IsTaken when there is one with
// its GUID.
func (t lrpTasks) Insert(tx *Tx, task lrp.Task) error {
	task.CreatedAt, task.UpdatedAt = tx.Now, tx.Now
	if err := t.Table.Insert(tx, &task); err != nil {
		return err
	}
	tx.note(Change{After: &task})
	return nil
}

// Swap writes next over the row that still has was's state and cell, and
// reports whether there was one. It sets UpdatedAt; GUID, domain and
// CreatedAt stay.
func (t lrpTasks) Swap(tx *Tx, was, next lrp.Task) (bool, error) {
	next.UpdatedAt = tx.Now
	all := t.table.fields.of(&next, tx.seal)
	fields := append(all[2:4:4], all[5:]...)
	n, err := tx.exec(`UPDATE lrp_tasks SET state = ?, cell_id = ?, updated_at = ?, failed = ?,
		failure_reason = ?, result = ?, outputs = ?, rejections = ?, rejection_reason = ?, cancelled = ?`+taskIs,
		append(fields, was.GUID, was.State, was.CellID)...)
	if n > 0 {
		tx.note(Change{Before: &was, After: &next})
	}
	return n > 0, err
}

// Delete removes the row that still has was's state and cell, and tells
// whether there was one.
func (lrpTasks) Delete(tx *Tx, was lrp.Task) (bool, error) {
	n, err := tx.exec("DELETE FROM lrp_tasks"+taskIs, was.GUID, was.State, was.CellID)
	if n > 0 {
		tx.note(Change{Before: &was})
	}
	return n > 0, err
}

// Mend makes a damaged row readable: what it has come to is lost.
func (lrpTasks) Mend(tx *Tx, guid string) error {
	_, err := tx.exec("UPDATE lrp_tasks SET result = x'', outputs = 'null' WHERE guid = ?", guid)
	return err
}

const taskIs = " WHERE guid = ? AND state = ? AND cell_id = ?"
