package backups

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"cupola/server/datadir"
)

// TestScratchOfKilledRestores is removed by the next restore, but not that of one that runs, nor what the daemon gathers.
func TestScratchOfKilledRestores(t *testing.T) {
	dir := t.TempDir()
	running, remove, err := newScratch(dir)
	if err != nil {
		t.Fatal(err)
	}
	left, daemons := filepath.Join(dir, datadir.ScratchPrefix+"space-1"), filepath.Join(dir, datadir.ScratchPrefix+"2")
	for _, one := range []string{left, daemons} {
		if err := os.MkdirAll(filepath.Join(one, "db"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	scratch, removeNext, err := newScratch(dir)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(scratch); err != nil || info.Mode() != fs.ModeDir|0o700 {
		t.Errorf("got %v, %v; want a directory of root's alone", info.Mode(), err)
	}
	there := func(want bool, all ...string) {
		t.Helper()
		for _, one := range all {
			if _, err := os.Stat(one); (err == nil) != want {
				t.Errorf("%s: got %v", one, err)
			}
		}
	}
	there(true, running, daemons, scratch)
	there(false, left)
	if err := remove(); err != nil {
		t.Error(err)
	}
	if err := removeNext(); err != nil {
		t.Error(err)
	}
	there(false, running, scratch)
}
