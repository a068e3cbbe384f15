package server

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cupola/server/config"
	"cupola/server/datadir"
)

// TestOpenSaysWhatItCannot makes the first part fail to open: what was opened is
// closed, and nothing else.
func TestOpenSaysWhatItCannot(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	d, err := open(t.Context(), config.Config{DataDir: file})
	if err == nil || d != nil || !strings.Contains(err.Error(), "open the data directory") {
		t.Errorf("got %v, %v; want what could not be opened", d, err)
	}
}

// TestOpenRefusesAClosedWay has a directory above the data directory that containers
// cannot pass: the daemon says so, with the mend, before it is ready.
func TestOpenRefusesAClosedWay(t *testing.T) {
	base, err := os.MkdirTemp("", "way")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(base) })
	if err := errors.Join(os.Chmod(base, 0o755), os.Mkdir(filepath.Join(base, "closed"), 0o700)); err != nil {
		t.Fatal(err)
	}
	closed := filepath.Join(base, "closed")
	_, err = open(t.Context(), config.Config{DataDir: filepath.Join(closed, "data"), Log: slog.New(slog.DiscardHandler)})
	if err == nil || !strings.Contains(err.Error(), "run 'chmod o+x "+closed+"'") {
		t.Errorf("got %v; want the directory and the mend", err)
	}
	if err := os.Chmod(closed, 0o711); err != nil {
		t.Fatal(err)
	}
	dir, err := datadir.Open(filepath.Join(closed, "data"), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	if err := dir.CheckReachable(); err != nil {
		t.Errorf("got %v; want it passed after the fix", err)
	}
}
