package store

import (
	"database/sql"
	"errors"
	"time"

	"cupola/store/cf"
)

// BrokerOperations are the operations that brokers have not ended.
var BrokerOperations = brokerOperations{&Table[cf.BrokerOperation]{table{
	name: "broker_operations", singular: "Broker operation",
	columns: "guid, created_at, updated_at, job_guid, broker_guid, phase, due_at, attempts, operation, orphan",
	fields: fieldsOf(func(v *cf.BrokerOperation, _ *sealer) []any {
		return []any{&v.GUID, timeColumn{&v.CreatedAt}, timeColumn{&v.UpdatedAt},
			nullColumn{&v.JobGUID}, &v.BrokerGUID, &v.Phase, timeColumn{&v.DueAt}, &v.Attempts, &v.Operation, jsonColumn{&v.Orphan}}
	}),
	resource: resourceOf(func(v *cf.BrokerOperation) *cf.Resource { return &v.Resource }),
	filters: map[string]string{
		"guids":     "broker_operations.guid",
		"job_guids": "job_guid",
	},
}}}

type brokerOperations struct{ *Table[cf.BrokerOperation] }

// newBrokerJobs are the jobs of some kinds that have neither ended nor an
// operation.
const newBrokerJobs = ` FROM jobs WHERE state IN ('PROCESSING', 'POLLING') AND operation IN (SELECT value FROM json_each(?))
AND NOT EXISTS (SELECT 1 FROM broker_operations b WHERE b.job_guid = jobs.guid)`

// HasJobs reports whether Begin would make operations.
func (brokerOperations) HasJobs(tx *Tx, kinds ...string) (has bool, err error) {
	err = tx.sql.QueryRowContext(tx.ctx, "SELECT EXISTS (SELECT 1"+newBrokerJobs+")", list(kinds)).Scan(&has)
	return has, err
}

// brokerOfJob selects the broker that a job asks.
const brokerOfJob = `SELECT ?1 FROM service_brokers WHERE guid = ?1 UNION ALL
SELECT o.broker_guid FROM service_instances i JOIN service_plans p ON p.guid = i.plan_guid JOIN service_offerings o ON o.guid = p.offering_guid
WHERE i.guid IN (SELECT ?1 UNION ALL SELECT instance_guid FROM service_bindings WHERE guid = ?1 UNION ALL SELECT instance_guid FROM route_bindings WHERE guid = ?1)`

// Begin makes an operation for each job of one of the kinds that has neither
// ended nor one.
func (t brokerOperations) Begin(tx *Tx, kinds ...string) error {
	jobs, err := query(tx, Jobs.Table, "SELECT "+Jobs.table.columns+newBrokerJobs+" ORDER BY id", list(kinds))
	if err != nil {
		return err
	}
	for _, j := range jobs {
		op := &cf.BrokerOperation{Resource: cf.Resource{CreatedAt: j.CreatedAt}, JobGUID: j.GUID, Phase: cf.PhaseSend, DueAt: tx.Now}
		err := tx.sql.QueryRowContext(tx.ctx, brokerOfJob, j.ResourceGUID).Scan(&op.BrokerGUID)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		if err := t.Insert(tx, op); err != nil {
			return err
		}
	}
	return nil
}

// Due are those whose time has come but for some, by GUID, the
// longest due first: of each broker, and altogether, at most as many as given.
func (t brokerOperations) Due(tx *Tx, but []string, ofEach, most int) ([]*cf.BrokerOperation, error) {
	return query(tx, t.Table, "SELECT "+t.table.columns+" FROM (SELECT *, row_number() OVER (PARTITION BY broker_guid ORDER BY due_at, id) turn FROM broker_operations "+
		"WHERE due_at <= ? AND guid NOT"+inList+") WHERE turn <= ? ORDER BY due_at, id"+limit(most), timeColumn{&tx.Now}, list(but), ofEach)
}

// Next is when the next of those is due that are not yet; false
// for none.
func (brokerOperations) Next(tx *Tx) (at time.Time, has bool, err error) {
	var next sql.Null[int64]
	err = tx.sql.QueryRowContext(tx.ctx, "SELECT min(due_at) FROM broker_operations WHERE due_at > ?", timeColumn{&tx.Now}).Scan(&next)
	if !next.Valid {
		return time.Time{}, false, err
	}
	return time.UnixMicro(next.V).UTC(), true, err
}
