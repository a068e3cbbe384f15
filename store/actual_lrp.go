package store

import (
	"cupola/runtime/guid"
	"cupola/runtime/lrp"
	"cupola/store/cf"
)

// ActualLRPs are the instances of what runs. A row has no GUID: its process
// GUID and index name it, and one write of a row says which state and instance
// it expects to find.
var ActualLRPs = &Table[lrp.Actual]{
	name: "actual_lrps", singular: "Actual LRP",
	columns: "process_guid, idx, domain, owner_guid, owner_part, instance_guid, cell_id, state, crash_count, crash_reason, placement_error, since, address, ports, ready, role, stopping, epoch, revision",
	fields: func(v *lrp.Actual, _ *sealer) []any {
		return []any{&v.ProcessGUID, &v.Index, &v.Domain, &v.Owner.GUID, &v.Owner.Part, &v.InstanceGUID, &v.CellID, &v.State,
			&v.CrashCount, &v.CrashReason, &v.PlacementError, timeColumn{&v.Since},
			&v.Address, jsonColumn{&v.Ports}, &v.Ready, &v.Role, &v.Stopping, &v.Tag.Epoch, &v.Tag.Index}
	},
	resource: func(*lrp.Actual) *cf.Resource { return nil },
	filters: map[string]string{
		"process_guids":  "process_guid",
		"indices":        "CAST(idx AS TEXT)",
		"instance_guids": "instance_guid",
		"states":         "state",
		"domains":        "domain",
		"cell_ids":       "cell_id",
		"epochs":         "epoch",
		// of all revisions of processes of Cloud Foundry
		"of_processes": "EXISTS (SELECT 1 FROM json_each(?) WHERE process_guid BETWEEN value || '-' AND value || '.')",
	},
	orders: map[string]string{"index": "idx"},
}

// ActualLRPTags are the tags of the rows alone, which take little time to read:
// every write of a row changes its tag. Rows of an older cupola have no epoch.
var ActualLRPTags = &Table[lrp.Tag]{
	name: ActualLRPs.name, singular: ActualLRPs.singular,
	columns:  "epoch, revision",
	fields:   func(v *lrp.Tag, _ *sealer) []any { return []any{&v.Epoch, &v.Index} },
	resource: func(*lrp.Tag) *cf.Resource { return nil },
	filters:  map[string]string{"domains": "domain", "cell_ids": "cell_id"},
}

// InsertActual adds a row; IsTaken when the index has one.
func (tx *Tx) InsertActual(a lrp.Actual) error {
	a.Tag = lrp.Tag{Epoch: guid.New()}
	if err := ActualLRPs.Insert(tx, &a); err != nil {
		return err
	}
	tx.note(Change{After: &a})
	return nil
}

// SwapActual writes next over the row that still has was's state, instance
// GUID and stopping mark, and tells whether there was one. The key stays; the
// tag counts.
func (tx *Tx) SwapActual(was, next lrp.Actual) (bool, error) { return tx.swapActual(was, next, false) }

// CrashActual is SwapActual for a row whose instance crashed.
func (tx *Tx) CrashActual(was, next lrp.Actual) (bool, error) { return tx.swapActual(was, next, true) }

func (tx *Tx) swapActual(was, next lrp.Actual, crash bool) (bool, error) {
	all := ActualLRPs.fields(&next, tx.seal)
	fields := all[5 : len(all)-2] // without the key, the domain, the owner and the tag
	after, err := ActualLRPs.change(tx, `UPDATE actual_lrps SET instance_guid = ?, cell_id = ?, state = ?, crash_count = ?, crash_reason = ?,
		placement_error = ?, since = ?, address = ?, ports = ?, ready = ?, role = ?, stopping = ?, revision = revision + 1`+actualIs,
		append(fields, actualArgs(was)...)...)
	for _, a := range after {
		was.Domain, was.Tag = a.Domain, lrp.Tag{Epoch: a.Tag.Epoch, Index: a.Tag.Index - 1}
		tx.note(Change{Before: &was, After: a, Crash: crash})
	}
	return len(after) > 0, err
}

// DeleteActual removes the row that still has was's state, instance GUID and
// stopping mark, and tells whether there was one.
func (tx *Tx) DeleteActual(was lrp.Actual) (bool, error) {
	return tx.deleteActuals(actualIs, actualArgs(was)...)
}

func (tx *Tx) deleteActuals(where string, args ...any) (bool, error) {
	gone, err := ActualLRPs.change(tx, "DELETE FROM actual_lrps"+where, args...)
	for _, a := range gone {
		tx.note(Change{Before: a})
	}
	return len(gone) > 0, err
}

// MendActual makes a damaged row readable, and retires its instance: which ports it
// has is lost.
func (tx *Tx) MendActual(key lrp.Key) error {
	_, err := tx.exec("UPDATE actual_lrps SET ports = 'null', stopping = 1, ready = 0, revision = revision + 1 WHERE process_guid = ? AND idx = ?", key.ProcessGUID, key.Index)
	return err
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
	return tx.retire(" WHERE process_guid = ? AND idx = ?", key.ProcessGUID, key.Index)
}

// RetireFrom ends the instances whose index is from or more.
func (tx *Tx) RetireFrom(processGUID string, from int) error {
	_, err := tx.retire(" WHERE process_guid = ? AND idx >= ?", processGUID, from)
	return err
}

func (tx *Tx) retire(where string, args ...any) (bool, error) {
	gone, err := tx.deleteActuals(where+" AND state IN ('UNCLAIMED', 'CRASHED')", args...)
	if err != nil {
		return false, err
	}
	n, err := tx.exec("UPDATE actual_lrps SET stopping = 1, ready = 0, revision = revision + 1"+where, args...)
	return gone || n > 0, err
}
