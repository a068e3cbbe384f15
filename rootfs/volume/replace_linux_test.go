package volume

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"cupola/runtime/users"
)

// TestReplace gives a volume what was saved of it: never while a container has it
// mounted, and what a killed Replace left is deleted by the next Store.
func TestReplace(t *testing.T) {
	dir, open := newStore(t)
	s := open()
	s.needLoop(t)
	spec := Spec{Bytes: 32 << 20, Shared: true}
	if err := s.Create("db", spec); err != nil {
		t.Fatal(err)
	}
	row := filepath.Join(openVolume(t, s, "db"), "row")
	if err := os.WriteFile(row, []byte("before"), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.Create(filepath.Join(t.TempDir(), "db.tar"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := errors.Join(s.Save(t.Context(), "db", time.Minute, file), os.WriteFile(row, []byte("after"), 0o600)); err != nil {
		t.Fatal(err)
	}
	want := func(content string) {
		t.Helper()
		if got, err := os.ReadFile(filepath.Join(openVolume(t, s, "db"), "row")); err != nil || string(got) != content {
			t.Errorf("got %q, %v; want %q", got, err, content)
		}
		if names, err := s.List(); err != nil || len(names) != 1 {
			t.Errorf("got volumes %v, %v; want one", names, err)
		}
	}
	if _, err := s.Show("c1", 0, users.Range{}, "db", "", nil); err != nil {
		t.Fatal(err)
	}
	if err := s.Replace(t.Context(), "db", spec, file); !errors.Is(err, ErrInUse) {
		t.Errorf("got %v; want %v", err, ErrInUse)
	}
	want("after")
	if err := errors.Join(s.Hide("c1"), s.Replace(t.Context(), "db", spec, file)); err != nil {
		t.Fatal(err)
	}
	want("before")
	broken, err := os.Create(filepath.Join(t.TempDir(), "broken.tar"))
	if err != nil {
		t.Fatal(err)
	}
	defer broken.Close()
	if _, err := broken.Write(bytes.Repeat([]byte("x"), 2048)); err != nil {
		t.Fatal(err)
	}
	if err := s.Replace(t.Context(), "db", spec, broken); err == nil {
		t.Error("a broken archive was restored")
	}
	want("before")
	if err := s.Create("db"+staged, spec); err != nil {
		t.Fatal(err)
	}
	s = open()
	want("before")
	if _, err := os.Lstat(filepath.Join(dir, "db"+staged)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v; want what a killed Replace left deleted", err)
	}
	if err := errors.Join(s.cfg.Disks.Close(filepath.Join(dir, "db")), os.Rename(filepath.Join(dir, "db"), filepath.Join(dir, "db"+staged))); err != nil {
		t.Fatal(err)
	}
	s = open()
	want("before")
}
