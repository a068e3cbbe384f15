package store

import (
	"cupola/runtime/lrp"
	"cupola/store/cf"
)

// ActualLRPs are the instances of what runs. A row has no GUID: its process
// GUID and index name it, and one write of a row says which state and instance
// it expects to find.
var ActualLRPs = &Table[lrp.Actual]{
	name: "actual_lrps", singular: "Actual LRP",
	columns: "process_guid, idx, domain, instance_guid, cell_id, state, crash_count, crash_reason, placement_error, since, address, ports, ready, stopping",
	fields: func(v *lrp.Actual, _ *sealer) []any {
		return []any{&v.ProcessGUID, &v.Index, &v.Domain, &v.InstanceGUID, &v.CellID, &v.State,
			&v.CrashCount, &v.CrashReason, &v.PlacementError, timeColumn{&v.Since},
			&v.Address, jsonColumn{&v.Ports}, &v.Ready, &v.Stopping}
	},
	resource: func(*lrp.Actual) *cf.Resource { return nil },
	filters: map[string]string{
		"process_guids":  "process_guid",
		"indices":        "CAST(idx AS TEXT)",
		"instance_guids": "instance_guid",
		"states":         "state",
	},
	orders: map[string]string{"index": "idx"},
}

// InsertActual adds a row; IsTaken when the index has one.
func (tx *Tx) InsertActual(a lrp.Actual) error {
	fields := ActualLRPs.fields(&a, tx.seal)
	_, err := tx.exec("actual_lrps", "INSERT INTO actual_lrps ("+ActualLRPs.columns+") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", fields...)
	return convert(err)
}

// SwapActual writes next over the row that still has was's state, instance
// GUID and stopping mark, and tells whether there was one. The key stays.
func (tx *Tx) SwapActual(was, next lrp.Actual) (bool, error) {
	fields := ActualLRPs.fields(&next, tx.seal)[3:]
	n, err := tx.exec("actual_lrps", `UPDATE actual_lrps SET instance_guid = ?, cell_id = ?, state = ?, crash_count = ?, crash_reason = ?,
		placement_error = ?, since = ?, address = ?, ports = ?, ready = ?, stopping = ?`+actualIs,
		append(fields, actualArgs(was)...)...)
	return n > 0, err
}

// DeleteActual removes the row that still has was's state, instance GUID and
// stopping mark, and tells whether there was one.
func (tx *Tx) DeleteActual(was lrp.Actual) (bool, error) {
	n, err := tx.exec("actual_lrps", "DELETE FROM actual_lrps"+actualIs, actualArgs(was)...)
	return n > 0, err
}

const actualIs = " WHERE process_guid = ? AND idx = ? AND state = ? AND instance_guid = ? AND stopping = ?"

func actualArgs(a lrp.Actual) []any {
	return []any{a.ProcessGUID, a.Index, a.State, a.InstanceGUID, a.Stopping}
}

// ActualByInstance is the row of an instance, or cf.ResourceNotFound.
func (tx *Tx) ActualByInstance(guid string) (*lrp.Actual, error) {
	return ActualLRPs.First(tx, Query{Where: map[string][]string{"instance_guids": {guid}}})
}

// RetireActual ends an instance so that a new one takes its index: Diego's
// RetireActualLRP. It tells whether there is such an instance. One that has a
// container goes when the container has.
func (tx *Tx) RetireActual(key lrp.Key) (bool, error) {
	n, err := tx.exec("actual_lrps", "DELETE FROM actual_lrps WHERE process_guid = ? AND idx = ? AND state IN ('UNCLAIMED', 'CRASHED')",
		key.ProcessGUID, key.Index)
	if err != nil || n > 0 {
		return n > 0, err
	}
	n, err = tx.exec("actual_lrps", "UPDATE actual_lrps SET stopping = 1, ready = 0 WHERE process_guid = ? AND idx = ?",
		key.ProcessGUID, key.Index)
	return n > 0, err
}
