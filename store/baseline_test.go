package store

import (
	"database/sql"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var updateBaseline = flag.Bool("update", false, "write the baseline anew, of all migrations")

// TestBaselineIsWhatMigrationsMake compares a new database with one that began with the first migration.
func TestBaselineIsWhatMigrationsMake(t *testing.T) {
	steps, err := migrationNames()
	if err != nil {
		t.Fatal(err)
	}
	base, err := baseline()
	if err != nil {
		t.Fatal(err)
	}
	if *updateBaseline {
		if err := os.Remove(base); err != nil {
			t.Fatal(err)
		}
		base = fmt.Sprintf("baseline/%04d.sql", len(steps))
		text := "-- Made by go test ./store -run Baseline -update\n" + contentOf(t, made(t, steps...))
		if err := os.WriteFile(base, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, got := made(t, steps[:versionOf(base)]...), made(t, base)
	if diff := cmp.Diff(strings.Split(contentOf(t, want), "\n"), strings.Split(contentOf(t, got), "\n")); diff != "" {
		t.Errorf("the baseline is not what the migrations make (-want +got):\n%s", diff)
	}
}

// made makes a database of scripts.
func made(t *testing.T, scripts ...string) *sql.DB {
	t.Helper()
	writer, err := open(filepath.Join(t.TempDir(), DatabaseFile), "_txlock=immediate")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { writer.Close() })
	writer.SetMaxOpenConns(1)
	if err := (&Store{writer: writer}).step(scripts...); err != nil {
		t.Fatal(err)
	}
	return writer
}

// contentOf is a script that makes the tables and rows of a database.
func contentOf(t *testing.T, db *sql.DB) string {
	t.Helper()
	var b strings.Builder
	for _, text := range textsOf(t, db, "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' ORDER BY rowid") {
		b.WriteString(text + ";\n")
	}
	for _, table := range textsOf(t, db, "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name") {
		columns := textsOf(t, db, "SELECT name FROM pragma_table_info('"+table+"')")
		quoted := "quote(" + strings.Join(columns, ")||', '||quote(") + ")"
		for _, row := range textsOf(t, db, "SELECT "+quoted+" FROM "+table) {
			fmt.Fprintf(&b, "INSERT INTO %s (%s) VALUES (%s);\n", table, strings.Join(columns, ", "), row)
		}
	}
	return b.String()
}

func textsOf(t *testing.T, db *sql.DB, query string) (all []string) {
	t.Helper()
	rows, err := db.Query(query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			t.Fatal(err)
		}
		all = append(all, text)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}
