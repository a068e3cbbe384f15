package store

import (
	"database/sql"
	"errors"
	"slices"
	"strings"

	"cupola/store/cf"
)

// JobParts are what jobs have left to do.
var JobParts jobParts

type jobParts struct{}

// partsAtOnce is how many parts one statement adds: a statement for each takes twice as
// long, and blocks other writes.
const partsAtOnce = 100

// Add adds parts to what a job has left to do.
func (jobParts) Add(tx *Tx, job string, parts []cf.JobPart) error {
	for some := range slices.Chunk(parts, partsAtOnce) {
		rows := strings.TrimSuffix(strings.Repeat("(?, ?, ?), ", len(some)), ", ")
		args := make([]any, 0, 3*len(some))
		for i := range some {
			args = append(args, job, some[i].AppGUID, sealedColumn{tx.seal, &some[i].Input})
		}
		if _, err := tx.exec("INSERT INTO job_parts (job_guid, app_guid, input) VALUES "+rows, args...); err != nil {
			return err
		}
	}
	return nil
}

// Next returns the first part that a job has left, nil for none.
func (jobParts) Next(tx *Tx, job string) (*cf.JobPart, error) {
	var p cf.JobPart
	err := tx.sql.QueryRowContext(tx.ctx, "SELECT id, app_guid, input FROM job_parts WHERE job_guid = ? ORDER BY id LIMIT 1", job).Scan(
		&p.ID, &p.AppGUID, sealedColumn{tx.seal, &p.Input})
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	return &p, err
}

// Delete removes a part that is done.
func (jobParts) Delete(tx *Tx, id int64) error {
	_, err := tx.exec("DELETE FROM job_parts WHERE id = ?", id)
	return err
}

// DeleteOf removes all that a job has left, as it has failed.
func (jobParts) DeleteOf(tx *Tx, job string) error {
	_, err := tx.exec("DELETE FROM job_parts WHERE job_guid = ?", job)
	return err
}
