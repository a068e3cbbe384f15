package rootfs

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

// trash deletes trees off everyone's path: a rename takes microseconds however large the tree is, and on ext4 without a
// journal creating files right after many deletions is ten times slower, so that whoever waits must not be who deletes.
type trash struct {
	dir string
	log *slog.Logger
	bg  sync.WaitGroup

	mu       sync.Mutex
	sweeping bool
	again    bool
}

func newTrash(dir string, log *slog.Logger) *trash { return &trash{dir: dir, log: log} }

// put takes path away now and deletes it later. A path that does not exist is no error.
func (t *trash) put(path string) error {
	err := os.Rename(path, filepath.Join(t.dir, rand.Text()))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	t.sweep()
	return nil
}

// sweep deletes all that is in the trash, in the background, one tree at a time.
func (t *trash) sweep() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.again = true
	if t.sweeping {
		return
	}
	t.sweeping = true
	t.bg.Go(fault.Func("rootfs", t.run))
}

func (t *trash) run() {
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

func (t *trash) more() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sweeping, t.again = t.again, false
	return t.sweeping
}

func (t *trash) wait() { t.bg.Wait() }

// deleteTree removes a tree, also one whose directories its owner made unwritable.
func deleteTree(path string) error {
	if err := os.RemoveAll(path); err == nil || privileged() {
		return err
	}
	_ = filepath.WalkDir(path, func(p string, e fs.DirEntry, _ error) error { // RemoveAll reports what this does not mend
		if e != nil && e.IsDir() {
			_ = os.Chmod(p, 0o700)
		}
		return nil
	})
	return os.RemoveAll(path)
}
