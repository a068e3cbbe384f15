package tree

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
)

// A scratch directory stays while it is used, whatever else is deleted meanwhile, and
// goes then. One of a process that was killed goes with the next sweep.
func TestScratchIsNotSwept(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "trash", "of the killed", "deep"), 0o700); err != nil {
		t.Fatal(err)
	}
	trash := NewTrash(filepath.Join(dir, "trash"), slog.New(slog.DiscardHandler))
	var used string
	err := trash.Scratch(func(scratch string) error {
		used = scratch
		file := filepath.Join(scratch, "file")
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			return err
		}
		old := filepath.Join(dir, "old")
		if err := errors.Join(os.MkdirAll(filepath.Join(old, "deep"), 0o700), trash.Put(old)); err != nil {
			return err
		}
		trash.Wait()
		_, err := os.Stat(file)
		return err
	})
	if err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(used); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the scratch directory was left: %v", err)
	}
	if left, err := os.ReadDir(filepath.Join(dir, "trash")); err != nil || len(left) != 0 {
		t.Errorf("got %v, %v in the trash", left, err)
	}
}
