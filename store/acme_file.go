package store

import (
	"database/sql"
	"errors"
	"io/fs"
	"strings"
	"time"
)

// ACMEFiles are the files of the ACME client, by paths like "a/b/c". Their values are
// sealed. A path is in a folder of each path that begins it.
var ACMEFiles acmeFiles

type acmeFiles struct{}

// Put keeps a value under a path.
func (acmeFiles) Put(tx *Tx, path string, value []byte) error {
	_, err := tx.exec("INSERT INTO acme_files (path, value, modified_at) VALUES (?, ?, ?) ON CONFLICT (path) DO UPDATE SET value = excluded.value, modified_at = excluded.modified_at",
		path, sealedColumn{tx.seal, value}, tx.Now.UnixMicro())
	return err
}

// Get returns the value of a path, and when it was put there. The error wraps
// fs.ErrNotExist if there is none.
func (acmeFiles) Get(tx *Tx, path string) (value []byte, modified time.Time, err error) {
	err = tx.sql.QueryRowContext(tx.ctx, "SELECT value, modified_at FROM acme_files WHERE path = ?", path).Scan(sealedColumn{tx.seal, &value}, timeColumn{&modified})
	if errors.Is(err, sql.ErrNoRows) {
		err = &fs.PathError{Op: "read", Path: path, Err: fs.ErrNotExist}
	}
	return value, modified, err
}

// Delete removes a path, and all below it.
func (acmeFiles) Delete(tx *Tx, path string) error {
	_, err := tx.exec("DELETE FROM acme_files WHERE path = ? OR substr(path, 1, ?) = ?", path, len(path)+1, path+"/")
	return err
}

// Below lists the paths below a folder; "" is the folder of all.
func (acmeFiles) Below(tx *Tx, folder string) ([]string, error) {
	if folder = strings.Trim(folder, "/"); folder == "" {
		return tx.texts("SELECT path FROM acme_files ORDER BY path")
	}
	return tx.texts("SELECT path FROM acme_files WHERE substr(path, 1, ?) = ? ORDER BY path", len(folder)+1, folder+"/")
}
