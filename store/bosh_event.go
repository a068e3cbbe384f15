package store

import "cupola/store/cf"

// BOSHEvents are the events of BOSH deployments and their resources.
var BOSHEvents = boshEvents{&Table[cf.BOSHEvent]{table{
	name: "bosh_events", singular: "Event",
	columns: "guid, created_at, updated_at, number, parent, user, action, object_type, object_name, task, deployment, instance, error",
	fields: fieldsOf(func(v *cf.BOSHEvent, _ *sealer) []any {
		return []any{&v.GUID, timeColumn{&v.CreatedAt}, timeColumn{&v.UpdatedAt}, &v.Number, &v.Parent, &v.User, &v.Action, &v.ObjectType, &v.ObjectName,
			&v.Task, &v.Deployment, &v.Instance, &v.Error}
	}),
	resource: resourceOf(func(v *cf.BOSHEvent) *cf.Resource { return &v.Resource }),
	filters: map[string]string{"guids": "guid", "numbers": "number", "parents": "parent", "users": "user", "actions": "action", "object_types": "object_type",
		"object_names": "object_name", "tasks": "task", "deployments": "deployment", "instances": "instance",
		"before_ids": "number < (SELECT CAST(value AS INTEGER) FROM json_each(?))"},
	orders: map[string]string{"number": "number"},
}}}

type boshEvents struct{ *Table[cf.BOSHEvent] }

// keptBOSHEvents is how many events are kept: the newest, as many as BOSH's director keeps.
const keptBOSHEvents = 10_000

// Insert adds an event with the next number, and deletes events that are too old.
func (t boshEvents) Insert(tx *Tx, e *cf.BOSHEvent) error {
	if err := tx.sql.QueryRowContext(tx.ctx, "SELECT coalesce(max(number), 0) + 1 FROM bosh_events").Scan(&e.Number); err != nil {
		return err
	}
	if err := t.Table.Insert(tx, e); err != nil {
		return err
	}
	_, err := tx.exec("DELETE FROM bosh_events WHERE number <= ?", e.Number-keptBOSHEvents)
	return err
}

// End adds the event that the newest action on an object in a task has ended; nothing if
// none is recorded.
func (t boshEvents) End(tx *Tx, task int, objectType, objectName, failure string) error {
	rows, err := query(tx, t.Table, "SELECT "+t.table.columns+" FROM bosh_events WHERE task = ? AND object_type = ? AND object_name = ? AND parent = 0 ORDER BY number DESC LIMIT 1",
		task, objectType, objectName)
	if err != nil || len(rows) == 0 {
		return err
	}
	e := *rows[0]
	e.Resource = cf.Resource{}
	e.Parent, e.Error = e.Number, failure
	return t.Insert(tx, &e)
}
