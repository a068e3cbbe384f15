package store

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"cupola/store/cf"
)

// TestFullDiskIsNamed fills the file system below the database.
func TestFullDiskIsNamed(t *testing.T) {
	s, fill, free := openSmall(t)
	insert := func(name string) error {
		return s.Write(context.Background(), func(tx *Tx) error { return Orgs.Insert(tx, &cf.Org{Name: name}) })
	}
	if err := insert("first"); err != nil {
		t.Fatal(err)
	}
	fill()
	var err error
	for n := 0; err == nil; n++ {
		err = insert(strings.Repeat("x", 1000) + strconv.Itoa(n))
	}
	if !errors.Is(err, ErrFull) || !IsPassing(err) {
		t.Errorf("got %v; want ErrFull, passing", err)
	}
	free()
	if err := insert("with space again"); err != nil {
		t.Error(err)
	}
	read(t, s, func(tx *Tx) error {
		orgs, err := Orgs.By(tx, "names", "first", "with space again")
		if len(orgs) != 2 {
			t.Errorf("%d of 2 orgs are left", len(orgs))
		}
		return err
	})
}

func TestDamageIsNamed(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, DatabaseFile), []byte(strings.Repeat("no database ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := Open(Config{Dir: dir, Log: slog.New(slog.DiscardHandler)})
	if err == nil {
		s.Close()
	}
	if !errors.Is(err, ErrCorrupt) {
		t.Errorf("got %v; want ErrCorrupt", err)
	}
}
