// Package storetest tests what derives from databases: it damages them, and writes
// at random.
package storetest

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"testing"

	"cupola/store"
)

// Damage makes rows of the database in dir undecodable: what is JSON is cut off,
// what is sealed is replaced. It fails the test where there is no such column.
func Damage(t *testing.T, dir, table, where string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, store.DatabaseFile)+"?_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	n := int64(0)
	for _, c := range columns(t, db, table) {
		value, is := "x'00'", "length("+c.name+") > 0"
		switch c.kind {
		case "TEXT":
			value, is = "'{'", c.name+" GLOB '[[{]*' OR "+c.name+" = 'null'"
		case "INTEGER":
			continue
		}
		r, err := db.Exec(fmt.Sprintf("UPDATE %s SET %s = %s WHERE (%s) AND (%s)", table, c.name, value, where, is))
		if err != nil {
			continue // a trigger reads the column
		}
		rows, err := r.RowsAffected()
		if err != nil {
			t.Fatal(err)
		}
		n += rows
	}
	if n == 0 {
		t.Fatalf("no row of %s where %s can be damaged", table, where)
	}
}

type column struct{ name, kind string }

func columns(t *testing.T, db *sql.DB, table string) (all []column) {
	t.Helper()
	rows, err := db.Query("SELECT name, type FROM pragma_table_info(?)", table)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var c column
		if err := rows.Scan(&c.name, &c.kind); err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}
