package store

import (
	"database/sql"
	"errors"
)

// Resources are the files that were uploaded, and which blobs they are.
var Resources resources

type resources struct{}

// Find gives the blob of a file that was once uploaded, by the SHA-1 and
// size that a client names it by.
func (resources) Find(tx *Tx, sha1 string, size int64) (digest string, ok bool, err error) {
	err = tx.sql.QueryRowContext(tx.ctx, "SELECT digest FROM resources WHERE sha1 = ? AND size = ?", sha1, size).Scan(&digest)
	if errors.Is(err, sql.ErrNoRows) {
		return "", false, nil
	}
	return digest, err == nil, err
}

// Remember keeps which blob a file is.
func (resources) Remember(tx *Tx, sha1 string, size int64, digest string) error {
	_, err := tx.exec(`INSERT INTO resources (sha1, size, digest, used_at) VALUES (?, ?, ?, ?)
		ON CONFLICT (sha1) DO UPDATE SET size = excluded.size, digest = excluded.digest, used_at = excluded.used_at`,
		sha1, size, digest, tx.Now.UnixMicro())
	return err
}
