package store

import (
	"cmp"
	"strconv"
)

// Touch writes a page of the database and changes nothing in it: when the Write of it
// returns nil, rows can be written.
func (tx *Tx) Touch() error {
	var version int
	rows, err := tx.sql.QueryContext(tx.ctx, "PRAGMA user_version")
	if err != nil {
		return err
	}
	for rows.Next() {
		err = rows.Scan(&version)
	}
	if err = cmp.Or(err, rows.Err(), rows.Close()); err != nil {
		return err
	}
	_, err = tx.exec("PRAGMA user_version = " + strconv.Itoa(version))
	return err
}
