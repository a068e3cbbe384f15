package store

import "cupola/store/cf"

// BrokerOperations are the operations that brokers have not ended.
var BrokerOperations = &Table[cf.BrokerOperation]{
	name: "broker_operations", singular: "Broker operation",
	columns: "guid, created_at, updated_at, job_guid, phase, due_at, attempts, operation, orphan",
	fields: func(v *cf.BrokerOperation, _ *sealer) []any {
		return []any{&v.GUID, timeColumn{&v.CreatedAt}, timeColumn{&v.UpdatedAt},
			nullColumn{&v.JobGUID}, &v.Phase, timeColumn{&v.DueAt}, &v.Attempts, &v.Operation, jsonColumn{&v.Orphan}}
	},
	resource: func(v *cf.BrokerOperation) *cf.Resource { return &v.Resource },
	filters: map[string]string{
		"guids":     "broker_operations.guid",
		"job_guids": "job_guid",
	},
}

// newBrokerJobs are the jobs of some kinds that have neither ended nor an
// operation.
const newBrokerJobs = ` FROM jobs WHERE state IN ('PROCESSING', 'POLLING') AND operation IN (SELECT value FROM json_each(?))
AND NOT EXISTS (SELECT 1 FROM broker_operations b WHERE b.job_guid = jobs.guid)`

// HasBrokerJobs tells whether BeginBrokerOperations has something to do.
func (tx *Tx) HasBrokerJobs(kinds ...string) (has bool, err error) {
	err = tx.sql.QueryRowContext(tx.ctx, "SELECT EXISTS (SELECT 1"+newBrokerJobs+")", list(kinds)).Scan(&has)
	return has, err
}

// BeginBrokerOperations makes an operation for each job of one of the kinds
// that has neither ended nor one.
func (tx *Tx) BeginBrokerOperations(kinds ...string) error {
	jobs, err := Jobs.query(tx, "SELECT "+Jobs.columns+newBrokerJobs+" ORDER BY id", list(kinds))
	if err != nil {
		return err
	}
	for _, j := range jobs {
		op := &cf.BrokerOperation{Resource: cf.Resource{CreatedAt: j.CreatedAt}, JobGUID: j.GUID, Phase: cf.PhaseSend, DueAt: tx.Now}
		if err := BrokerOperations.Insert(tx, op); err != nil {
			return err
		}
	}
	return nil
}
