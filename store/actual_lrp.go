package store

import (
	"slices"

	"cupola/runtime/guid"
	"cupola/runtime/lrp"
	"cupola/store/cf"
)

// ActualLRPs are the instances of what runs. A row has no GUID: its process
// GUID and index name it, and one write of a row says which state and instance
// it expects to find.
var ActualLRPs = actualLRPs{&Table[lrp.Actual]{table{
	name: "actual_lrps", singular: "Actual LRP",
	columns: "process_guid, idx, domain, owner_guid, owner_part, instance_guid, cell_id, state, crash_count, crash_reason, placement_error, since, address, ports, tls_ports, ready, role, stopping, epoch, revision",
	fields: fieldsOf(func(v *lrp.Actual, _ *sealer) []any {
		return []any{&v.ProcessGUID, &v.Index, &v.Domain, &v.Owner.GUID, &v.Owner.Part, &v.InstanceGUID, &v.CellID, &v.State,
			&v.CrashCount, &v.CrashReason, &v.PlacementError, timeColumn{&v.Since},
			&v.Address, jsonColumn{&v.Ports}, &v.TLSPorts, &v.Ready, &v.Role, &v.Stopping, &v.Tag.Epoch, &v.Tag.Index}
	}),
	resource: resourceOf(func(*lrp.Actual) *cf.Resource { return nil }),
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
	accepts: map[string]func([]string) predicate{"of_processes": func(processes []string) predicate {
		return predicate{column: "process_guid", accept: func(v any) bool {
			guid, _ := v.(string)
			return slices.ContainsFunc(processes, func(p string) bool { return p+"-" <= guid && guid <= p+"." })
		}}
	}},
	orders: map[string]string{"index": "idx"},
}}}

type actualLRPs struct{ *Table[lrp.Actual] }

// ActualLRPTags are the tags of the rows alone, which take little time to read:
// every write of a row changes its tag. Rows of an older cupola have no epoch.
var ActualLRPTags = &Table[lrp.Tag]{table{
	name: ActualLRPs.table.name, singular: ActualLRPs.table.singular,
	columns:  "epoch, revision",
	fields:   fieldsOf(func(v *lrp.Tag, _ *sealer) []any { return []any{&v.Epoch, &v.Index} }),
	resource: resourceOf(func(*lrp.Tag) *cf.Resource { return nil }),
	filters:  map[string]string{"domains": "domain", "cell_ids": "cell_id"},
}}

// Insert adds a row; IsTaken when the index has one.
func (t actualLRPs) Insert(tx *Tx, a lrp.Actual) error {
	a.Tag = lrp.Tag{Epoch: guid.New()}
	if err := t.Table.Insert(tx, &a); err != nil {
		return err
	}
	tx.note(Change{After: &a})
	return nil
}

// Swap writes next over the row that still has was's state, instance
// GUID and stopping mark, and reports whether there was one. The key stays; the
// tag counts.
func (t actualLRPs) Swap(tx *Tx, was, next lrp.Actual) (bool, error) {
	return t.swap(tx, was, next, false)
}

// Crash is Swap for a row whose instance crashed.
func (t actualLRPs) Crash(tx *Tx, was, next lrp.Actual) (bool, error) {
	return t.swap(tx, was, next, true)
}

func (t actualLRPs) swap(tx *Tx, was, next lrp.Actual, crash bool) (bool, error) {
	all := t.table.fields.of(&next, tx.seal)
	fields := all[5 : len(all)-2] // without the key, the domain, the owner and the tag
	after, err := change(tx, t.Table, `UPDATE actual_lrps SET instance_guid = ?, cell_id = ?, state = ?, crash_count = ?, crash_reason = ?,
		placement_error = ?, since = ?, address = ?, ports = ?, tls_ports = ?, ready = ?, role = ?, stopping = ?, revision = revision + 1`+actualIs,
		append(fields, actualArgs(was)...)...)
	for _, a := range after {
		was.Domain, was.Tag = a.Domain, lrp.Tag{Epoch: a.Tag.Epoch, Index: a.Tag.Index - 1}
		tx.note(Change{Before: &was, After: a, Crash: crash})
	}
	return len(after) > 0, err
}

// Delete removes the row that still has was's state, instance GUID and
// stopping mark, and reports whether there was one.
func (t actualLRPs) Delete(tx *Tx, was lrp.Actual) (bool, error) {
	return t.deleteWhere(tx, actualIs, actualArgs(was)...)
}

func (t actualLRPs) deleteWhere(tx *Tx, where string, args ...any) (bool, error) {
	gone, err := change(tx, t.Table, "DELETE FROM actual_lrps"+where, args...)
	for _, a := range gone {
		tx.note(Change{Before: a})
	}
	return len(gone) > 0, err
}

// Troubled returns the instances that crashed, could not be placed, or run and are
// not ready.
func (t actualLRPs) Troubled(tx *Tx) ([]*lrp.Actual, error) {
	return query(tx, t.Table, "SELECT "+t.table.columns+" FROM actual_lrps WHERE crash_count > 0 OR placement_error != '' OR state = 'RUNNING' AND ready = 0 ORDER BY process_guid, idx")
}

// Mend makes a damaged row readable, and retires its instance: which ports it
// has is lost.
func (actualLRPs) Mend(tx *Tx, key lrp.Key) error {
	_, err := tx.exec("UPDATE actual_lrps SET ports = 'null', stopping = 1, ready = 0, revision = revision + 1 WHERE process_guid = ? AND idx = ?", key.ProcessGUID, key.Index)
	return err
}

const actualIs = " WHERE process_guid = ? AND idx = ? AND state = ? AND instance_guid = ? AND stopping = ?"

func actualArgs(a lrp.Actual) []any {
	return []any{a.ProcessGUID, a.Index, a.State, a.InstanceGUID, a.Stopping}
}

// OfInstance is the row of an instance, or cf.ResourceNotFound.
func (t actualLRPs) OfInstance(tx *Tx, guid string) (*lrp.Actual, error) {
	return t.First(tx, Query{Where: map[string][]string{"instance_guids": {guid}}})
}

// Retire ends an instance so that a new one takes its index: Diego's
// RetireActualLRP. It reports whether there is such an instance. One that has a
// container goes when the container has.
func (t actualLRPs) Retire(tx *Tx, key lrp.Key) (bool, error) {
	return t.retire(tx, " WHERE process_guid = ? AND idx = ?", key.ProcessGUID, key.Index)
}

// RetireFrom ends the instances whose index is from or more.
func (t actualLRPs) RetireFrom(tx *Tx, processGUID string, from int) error {
	_, err := t.retire(tx, " WHERE process_guid = ? AND idx >= ?", processGUID, from)
	return err
}

func (t actualLRPs) retire(tx *Tx, where string, args ...any) (bool, error) {
	gone, err := t.deleteWhere(tx, where+" AND state IN ('UNCLAIMED', 'CRASHED')", args...)
	if err != nil {
		return false, err
	}
	n, err := tx.exec("UPDATE actual_lrps SET stopping = 1, ready = 0, revision = revision + 1"+where, args...)
	return gone || n > 0, err
}
