package store

import (
	"database/sql"
	"errors"
)

// BuildCaches are the digests of apps' build caches, which a staging leaves for the next.
var BuildCaches buildCaches

type buildCaches struct{}

// Get is the digest of what an app's last staging on the stack left for
// the next one; "" when there is none.
func (buildCaches) Get(tx *Tx, appGUID, stack string) (digest string, err error) {
	err = tx.sql.QueryRowContext(tx.ctx, "SELECT digest FROM build_caches WHERE app_guid = ? AND stack = ?", appGUID, stack).Scan(&digest)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return digest, err
}

// Set keeps the digest for the app's next staging on the stack.
func (buildCaches) Set(tx *Tx, appGUID, stack, digest string) error {
	_, err := tx.exec(`INSERT INTO build_caches (app_guid, stack, digest) VALUES (?, ?, ?)
		ON CONFLICT (app_guid, stack) DO UPDATE SET digest = excluded.digest`, appGUID, stack, digest)
	return err
}

// ClearOf forgets the build caches of an app.
func (buildCaches) ClearOf(tx *Tx, appGUID string) error {
	_, err := tx.exec("DELETE FROM build_caches WHERE app_guid = ?", appGUID)
	return err
}

// Drop forgets the build caches that are one blob.
func (buildCaches) Drop(tx *Tx, digest string) error {
	_, err := tx.exec("DELETE FROM build_caches WHERE digest = ?", digest)
	return err
}

// Clear forgets all build caches.
func (buildCaches) Clear(tx *Tx) error {
	_, err := tx.exec("DELETE FROM build_caches")
	return err
}

// Digests are those of all build caches, so that their blobs are kept.
func (buildCaches) Digests(tx *Tx) ([]string, error) {
	return tx.texts("SELECT DISTINCT digest FROM build_caches")
}
