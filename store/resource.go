package store

import (
	"database/sql"
	"errors"
)

// Resources are the files that were uploaded, and where they are.
var Resources resources

type resources struct{}

// Resource is where a file is that was uploaded.
type Resource struct {
	Digest string // of a blob
	Entry  string // the file's name in the zip that the blob is; "" if the blob is the file
}

const findResource = "SELECT digest, entry FROM resources WHERE sha1 = ? AND size = ?"

// Find gives a file that was once uploaded, by the SHA-1 and size that a client names it
// by. The blob may be gone, if no package is it any longer.
func (resources) Find(tx *Tx, sha1 string, size int64) (Resource, bool, error) {
	return scanResource(tx, findResource, sha1, size)
}

// Kept is Find of a file whose blob is kept.
func (resources) Kept(tx *Tx, sha1 string, size int64) (Resource, bool, error) {
	return scanResource(tx, findResource+" AND (entry = '' OR EXISTS (SELECT 1 FROM packages WHERE packages.digest = resources.digest))", sha1, size)
}

func scanResource(tx *Tx, query string, args ...any) (r Resource, ok bool, err error) {
	err = tx.sql.QueryRowContext(tx.ctx, query, args...).Scan(&r.Digest, &r.Entry)
	if errors.Is(err, sql.ErrNoRows) {
		return r, false, nil
	}
	return r, err == nil, err
}

// Remember keeps where a file is.
func (resources) Remember(tx *Tx, sha1 string, size int64, r Resource) error {
	_, err := tx.exec(`INSERT INTO resources (sha1, size, digest, entry, used_at) VALUES (?, ?, ?, ?, ?)
		ON CONFLICT (sha1) DO UPDATE SET size = excluded.size, digest = excluded.digest, entry = excluded.entry, used_at = excluded.used_at`,
		sha1, size, r.Digest, r.Entry, tx.Now.UnixMicro())
	return err
}

// Forget forgets the files of a blob, which clients then upload again.
func (resources) Forget(tx *Tx, digest string) error {
	_, err := tx.exec("DELETE FROM resources WHERE digest = ?", digest)
	return err
}
