package store

import (
	"database/sql"
	"errors"
)

// Settings are values under names, sealed.
var Settings settings

type settings struct{}

// Get reads what Set kept under the name into v, and reports whether
// there is any.
func (settings) Get(tx *Tx, name string, v any) (bool, error) {
	err := tx.sql.QueryRowContext(tx.ctx, "SELECT value FROM settings WHERE name = ?", name).Scan(sealedColumn{tx.seal, v})
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// Set keeps a value under a name.
func (settings) Set(tx *Tx, name string, v any) error {
	_, err := tx.exec("INSERT INTO settings (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
		name, sealedColumn{tx.seal, v})
	return err
}
