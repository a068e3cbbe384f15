package store

import (
	"database/sql"
	"errors"

	"cupola/store/cf"
)

// AddJobParts adds parts to what a job has left to do.
func (tx *Tx) AddJobParts(job string, parts []cf.JobPart) error {
	for _, p := range parts {
		_, err := tx.exec("job_parts", "INSERT INTO job_parts (job_guid, app_guid, input) VALUES (?, ?, ?)", job, p.AppGUID, sealedColumn{tx.seal, &p.Input})
		if err != nil {
			return err
		}
	}
	return nil
}

// NextJobPart returns the first part that a job has left, nil for none.
func (tx *Tx) NextJobPart(job string) (*cf.JobPart, error) {
	var p cf.JobPart
	err := tx.sql.QueryRowContext(tx.ctx, "SELECT id, app_guid, input FROM job_parts WHERE job_guid = ? ORDER BY id LIMIT 1", job).Scan(
		&p.ID, &p.AppGUID, sealedColumn{tx.seal, &p.Input})
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	return &p, err
}

// DeleteJobPart removes a part that is done.
func (tx *Tx) DeleteJobPart(id int64) error {
	_, err := tx.exec("job_parts", "DELETE FROM job_parts WHERE id = ?", id)
	return err
}

// DeleteJobParts removes all that a job has left, as it has failed.
func (tx *Tx) DeleteJobParts(job string) error {
	_, err := tx.exec("job_parts", "DELETE FROM job_parts WHERE job_guid = ?", job)
	return err
}
