package store

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"cupola/store/cf"
)

// TestCheckFindsDamage spoils pages of a database.
func TestCheckFindsDamage(t *testing.T) {
	s := openTest(t)
	for _, name := range []string{"one", "two", "three"} {
		write(t, s, func(tx *Tx) error { return Orgs.Insert(tx, &cf.Org{Name: name}) })
	}
	for _, d := range []Depth{Quick, Full} {
		if err := s.Check(t.Context(), d); err != nil {
			t.Errorf("%s of a sound database: %v", d, err)
		}
	}
	dir := t.TempDir()
	if err := s.Snapshot(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, DatabaseFile)
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for at := 4096 * 3; at < len(content); at += 4096 * 2 {
		copy(content[at:], "\xff\xff\xff\xff\xff\xff\xff\xff")
	}
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	damaged, err := Open(Config{Dir: dir})
	if err == nil {
		err = errors.Join(damaged.Check(t.Context(), Quick), damaged.Close())
	}
	if !errors.Is(err, ErrCorrupt) {
		t.Errorf("got %v; want ErrCorrupt", err)
	}
}

// TestCheckFindsWhatOpenDoesNotRead spoils one page at a time: most are of tables
// that are not read at the start, and only Check can name them.
func TestCheckFindsWhatOpenDoesNotRead(t *testing.T) {
	s := openTest(t)
	dir := t.TempDir()
	if err := s.Snapshot(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	sound, err := os.ReadFile(filepath.Join(dir, DatabaseFile))
	if err != nil {
		t.Fatal(err)
	}
	const page, tries = 4096, 8
	checked := 0
	for n := range tries {
		at := (len(sound)/page - 1 - n) * page
		spoiled := slices.Clone(sound)
		copy(spoiled[at:], "\xff\xff\xff\xff\xff\xff\xff\xff")
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, DatabaseFile), spoiled, 0o600); err != nil {
			t.Fatal(err)
		}
		damaged, err := Open(Config{Dir: dir})
		if err != nil {
			continue
		}
		checked++
		if err := damaged.Check(t.Context(), Quick); !errors.Is(err, ErrCorrupt) {
			t.Errorf("page %d: got %v; want ErrCorrupt", at/page+1, err)
		}
		_ = damaged.Close() // it may report the damage, which Check is to find
	}
	if checked == 0 {
		t.Errorf("none of %d databases could be opened", tries)
	}
}

func TestReplaceKeepsWhatWasThere(t *testing.T) {
	s := openTest(t)
	write(t, s, func(tx *Tx) error { return Orgs.Insert(tx, &cf.Org{Name: "copied"}) })
	from := filepath.Join(s.dir, "from.db")
	if err := s.Copy(t.Context(), from); err != nil {
		t.Fatal(err)
	}
	write(t, s, func(tx *Tx) error { return Orgs.Insert(tx, &cf.Org{Name: "later"}) })
	// What a killed daemon leaves: the last change is in the log alone.
	left := t.TempDir()
	for _, name := range []string{DatabaseFile, DatabaseFile + "-wal", KeyFile} {
		content, err := os.ReadFile(filepath.Join(s.dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(left, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	aside, err := Replace(left, from, ".replaced")
	if err != nil {
		t.Fatal(err)
	}
	orgs := func() []string {
		t.Helper()
		s, err := Open(Config{Dir: left})
		if err != nil {
			t.Fatal(err)
		}
		all, err := names(t, s)
		if err := errors.Join(err, s.Close()); err != nil {
			t.Fatal(err)
		}
		return all
	}
	if got := orgs(); len(got) != 1 || got[0] != "copied" {
		t.Errorf("got %v; want what was copied", got)
	}
	for _, suffix := range []string{"", "-wal"} {
		if err := os.Rename(aside+suffix, filepath.Join(left, DatabaseFile+suffix)); err != nil {
			t.Fatal(err)
		}
	}
	if got := orgs(); len(got) != 2 {
		t.Errorf("kept aside: got %v; want both", got)
	}
}
