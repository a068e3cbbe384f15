package store

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"cupola/store/cf"
)

// snapshot gives a directory with a snapshot of a store that holds something.
func snapshot(t *testing.T) string {
	t.Helper()
	s := openTest(t)
	_, _, app := seed(t, s)
	write(t, s, func(tx *Tx) error {
		if err := Settings.Set(tx, "key", "a secret"); err != nil {
			return err
		}
		return Packages.Insert(tx, &cf.Package{AppGUID: app.GUID, Type: "bits", State: cf.PackageReady, Digest: strings.Repeat("a", 64)})
	})
	dir := t.TempDir()
	if err := s.Snapshot(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestASnapshotIsSoundWhileOthersWrite(t *testing.T) {
	s := openTest(t)
	seed(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	var writers sync.WaitGroup
	writers.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			if err := s.Write(ctx, func(tx *Tx) error { return Orgs.Insert(tx, &cf.Org{Name: fmt.Sprint("org ", n)}) }); err != nil && ctx.Err() == nil {
				t.Error(err)
			}
		}
	})
	for range 5 {
		dir := t.TempDir()
		if err := s.Snapshot(t.Context(), dir); err != nil {
			t.Fatal(err)
		}
		if _, err := Inspect(t.Context(), dir); err != nil {
			t.Error(err)
		}
	}
	cancel()
	writers.Wait()
}

func TestInspectTellsWhatRowsName(t *testing.T) {
	c, err := Inspect(t.Context(), snapshot(t))
	steps, _ := migrationNames()
	if err != nil || c.Schema != len(steps) || !slices.Equal(c.Blobs, []string{strings.Repeat("a", 64)}) {
		t.Errorf("got %+v, %v", c, err)
	}
}

func TestInspectRefuses(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long with the race detector, and has nothing for it")
	}
	run := func(sql string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			db, err := open(filepath.Join(dir, DatabaseFile), "")
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			if _, err := db.Exec("PRAGMA foreign_keys = 0; " + sql); err != nil {
				t.Fatal(err)
			}
		}
	}
	overwrite := func(name string, at int64, with []byte) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			f, err := os.OpenFile(filepath.Join(dir, name), os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if _, err := f.WriteAt(with, at); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, c := range map[string]struct {
		harm func(*testing.T, string)
		want string
	}{
		"a newer schema":         {run("PRAGMA user_version = 999"), "newer cupola"},
		"another's database":     {run("PRAGMA user_version = 0"), "none of cupola's"},
		"a trigger":              {run("CREATE TRIGGER evil AFTER INSERT ON apps BEGIN DELETE FROM apps; END"), "a trigger evil that no migration makes"},
		"a view":                 {run("CREATE VIEW evil AS SELECT 1"), "a view evil that no migration makes"},
		"a missing index":        {run("DROP INDEX processes_app"), "the migrations make"},
		"a row without its like": {run("UPDATE apps SET space_guid = 'nowhere'"), "not there"},
		"damaged pages":          {overwrite(DatabaseFile, 3*4096, slices.Repeat([]byte{0xff}, 8*4096)), "not sound"},
		"no database":            {overwrite(DatabaseFile, 0, []byte("this is something else")), "not sound"},
		"the key of another":     {overwrite(KeyFile, 0, slices.Repeat([]byte{1}, 32)), "store.key"},
		"no key":                 {func(t *testing.T, dir string) { os.Remove(filepath.Join(dir, KeyFile)) }, "store.key is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := snapshot(t)
			c.harm(t, dir)
			if _, err := Inspect(t.Context(), dir); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v; want %q", err, c.want)
			}
		})
	}
}

// older makes a database of a cupola that knew so many migrations fewer.
func older(t *testing.T, dir string, fewer int) {
	t.Helper()
	writer, err := open(filepath.Join(dir, DatabaseFile), "_txlock=immediate")
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	s := &Store{writer: writer, log: slog.New(slog.DiscardHandler)}
	steps, err := migrationNames()
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range steps[:len(steps)-fewer] {
		if err := s.step(step); err != nil {
			t.Fatal(err)
		}
	}
}

// A database of an older cupola is copied before it is migrated, and the last
// few copies are kept.
func TestMigrationsKeepACopy(t *testing.T) {
	dir := t.TempDir()
	older(t, dir, 2)
	for _, n := range []string{"0002", "0003", "0004"} {
		if err := os.WriteFile(filepath.Join(dir, "cupola.db.before-"+n), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, err := Open(Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	steps, _ := migrationNames()
	made := fmt.Sprintf("cupola.db.before-%04d", len(steps)-1)
	copies, _ := filepath.Glob(filepath.Join(dir, "*.before-*"))
	if want := []string{filepath.Join(dir, "cupola.db.before-0003"), filepath.Join(dir, "cupola.db.before-0004"), filepath.Join(dir, made)}; !slices.Equal(copies, want) {
		t.Fatalf("got %q; want %q", copies, want)
	}
	if info, err := os.Stat(filepath.Join(dir, made)); err != nil || info.Mode() != 0o600 {
		t.Errorf("got %v, %v; want it for root alone", info, err)
	}
	if schema, err := checkFile(t.Context(), filepath.Join(dir, made)); err != nil || schema != len(steps)-2 {
		t.Errorf("got schema %d, %v; want %d", schema, err, len(steps)-2)
	}
}

// A backup of an older cupola can be inspected.
func TestInspectMigrates(t *testing.T) {
	dir := t.TempDir()
	older(t, dir, 1)
	if _, err := newKey(filepath.Join(dir, KeyFile)); err != nil {
		t.Fatal(err)
	}
	steps, _ := migrationNames()
	if c, err := Inspect(t.Context(), dir); err != nil || c.Schema != len(steps)-1 {
		t.Errorf("got %+v, %v", c, err)
	}
}

// What a newer cupola migrated, and then failed at, is as it was before.
func TestRevert(t *testing.T) {
	dir := t.TempDir()
	older(t, dir, 2)
	before, err := SchemaOf(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := Revert(t.Context(), dir, before); err != nil {
		t.Errorf("got %v for one that was not migrated", err)
	}
	s, err := Open(Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	write(t, s, func(tx *Tx) error { return Orgs.Insert(tx, &cf.Org{Name: "by the newer one"}) })
	s.Close()
	if err := Revert(t.Context(), dir, before); err != nil {
		t.Fatal(err)
	}
	if got, err := SchemaOf(t.Context(), dir); err != nil || got != before {
		t.Errorf("got schema %d, %v; want %d", got, err, before)
	}
	if s, err = Open(Config{Dir: dir}); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	read(t, s, func(tx *Tx) error {
		if n, err := Orgs.Count(tx, Query{}); err != nil || n != 0 {
			t.Errorf("got %d orgs, %v; want what was before", n, err)
		}
		return nil
	})
	if _, err := os.Stat(filepath.Join(dir, "cupola.db.failed")); err != nil {
		t.Errorf("what the newer one wrote is lost: %v", err)
	}
	if err := Revert(t.Context(), dir, 1); err == nil {
		t.Error("got no error where there is no copy")
	}
	if n, err := SchemaOf(t.Context(), t.TempDir()); n != 0 || err != nil {
		t.Errorf("got %d, %v for no database", n, err)
	}
}
