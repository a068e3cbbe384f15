package store

import "cupola/store/cf"

// Jobs are the jobs behind 202s.
var Jobs = jobs{&Table[cf.Job]{table{
	name: "jobs", singular: "Job", labelled: false,
	columns: "guid, created_at, updated_at, operation, resource_guid, resource_type, state, errors, warnings, input",
	fields: fieldsOf(func(v *cf.Job, k *sealer) []any {
		return []any{&v.GUID, timeColumn{&v.CreatedAt}, timeColumn{&v.UpdatedAt},
			&v.Operation, &v.ResourceGUID, &v.ResourceType, &v.State, jsonColumn{&v.Errors}, jsonColumn{&v.Warnings}, sealedColumn{k, &v.Input}}
	}),
	resource: resourceOf(func(v *cf.Job) *cf.Resource { return &v.Resource }),
	filters: map[string]string{
		"guids":          "jobs.guid",
		"except":         "jobs.guid NOT" + inList,
		"states":         "state",
		"operations":     "operation",
		"resource_guids": "resource_guid",
	},
	orders: map[string]string{"created_at": "created_at", "updated_at": "updated_at"},
}}}

type jobs struct{ *Table[cf.Job] }

// LastFailed returns the jobs of an operation that failed, and after which none on the
// same resource has ended.
func (t jobs) LastFailed(tx *Tx, operation string) ([]*cf.Job, error) {
	return query(tx, t.Table, "SELECT "+t.table.columns+" FROM jobs WHERE state = ? AND id IN"+
		" (SELECT max(id) FROM jobs WHERE operation = ? AND state IN (?, ?) GROUP BY resource_guid)",
		cf.JobFailed, operation, cf.JobFailed, cf.JobComplete)
}
