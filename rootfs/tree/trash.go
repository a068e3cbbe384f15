package tree

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"cupola/runtime/fault"
)

// Trash deletes trees in the background: a rename takes microseconds however large the tree is. On ext4 without a journal
// creating files right after many deletions is ten times slower, so that a caller who waits must not delete.
type Trash struct {
	dir string
	log *slog.Logger
	bg  sync.WaitGroup

	mu       sync.Mutex
	sweeping bool
	again    bool
}

// NewTrash collects what is to be deleted in dir, which must be on the same mount.
func NewTrash(dir string, log *slog.Logger) *Trash { return &Trash{dir: dir, log: log} }

// Put removes path now and deletes its files later. A path that does not exist is no error.
func (t *Trash) Put(path string) error {
	err := os.Rename(path, filepath.Join(t.dir, rand.Text()))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	t.Sweep()
	return nil
}

// Sweep deletes what is in the trash, in the background, one tree at a time.
func (t *Trash) Sweep() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.again = true
	if t.sweeping {
		return
	}
	t.sweeping = true
	t.bg.Go(fault.Func("rootfs", t.run))
}

func (t *Trash) run() {
	for t.more() {
		names, err := os.ReadDir(t.dir)
		if err != nil {
			t.log.Warn("trash was not read", "err", err)
		}
		for _, e := range names {
			if err := fault.Guard("rootfs", func() error { return deleteTree(filepath.Join(t.dir, e.Name())) }); err != nil {
				t.log.Warn("trash was not deleted", "err", err)
			}
		}
	}
}

func (t *Trash) more() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sweeping, t.again = t.again, false
	return t.sweeping
}

// Wait waits for deletions under way.
func (t *Trash) Wait() { t.bg.Wait() }

// deleteTree removes a tree, also one whose directories its owner made unwritable.
func deleteTree(path string) error {
	if err := os.RemoveAll(path); err == nil || Privileged() {
		return err
	}
	_ = filepath.WalkDir(path, func(p string, e fs.DirEntry, _ error) error { // RemoveAll reports what this does not fix
		if e != nil && e.IsDir() {
			_ = os.Chmod(p, 0o700)
		}
		return nil
	})
	return os.RemoveAll(path)
}
