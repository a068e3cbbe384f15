package store

import (
	"database/sql"
	"errors"
)

// BuildCache is the digest of what an app's last staging on the stack left for
// the next one; "" when there is none.
func (tx *Tx) BuildCache(appGUID, stack string) (digest string, err error) {
	err = tx.sql.QueryRowContext(tx.ctx, "SELECT digest FROM build_caches WHERE app_guid = ? AND stack = ?", appGUID, stack).Scan(&digest)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return digest, err
}

// SetBuildCache keeps the digest for the app's next staging on the stack.
func (tx *Tx) SetBuildCache(appGUID, stack, digest string) error {
	_, err := tx.exec(`INSERT INTO build_caches (app_guid, stack, digest) VALUES (?, ?, ?)
		ON CONFLICT (app_guid, stack) DO UPDATE SET digest = excluded.digest`, appGUID, stack, digest)
	return err
}

// ClearBuildCachesOf forgets the build caches of an app.
func (tx *Tx) ClearBuildCachesOf(appGUID string) error {
	_, err := tx.exec("DELETE FROM build_caches WHERE app_guid = ?", appGUID)
	return err
}

// ClearBuildCaches forgets all build caches.
func (tx *Tx) ClearBuildCaches() error {
	_, err := tx.exec("DELETE FROM build_caches")
	return err
}

// BuildCaches are the digests of all build caches, so that their blobs are
// kept.
func (tx *Tx) BuildCaches() ([]string, error) {
	rows, err := tx.sql.QueryContext(tx.ctx, "SELECT DISTINCT digest FROM build_caches")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var digests []string
	for rows.Next() {
		var d string
		if err := rows.Scan(&d); err != nil {
			return nil, err
		}
		digests = append(digests, d)
	}
	return digests, rows.Err()
}
