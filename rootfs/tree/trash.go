package tree

import (
	"context"
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
	swept    chan struct{}   // closed when the sweep under way ends
	scratch  map[string]bool // names of directories in use
}

// NewTrash returns a Trash that collects trees in dir, which must be on the same mount.
func NewTrash(dir string, log *slog.Logger) *Trash {
	return &Trash{dir: dir, log: log, scratch: map[string]bool{}}
}

// Put removes path now and deletes its files later. A path that does not exist is not an error.
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
	t.sweeping, t.swept = true, make(chan struct{})
	t.bg.Go(fault.Func("rootfs", t.run))
}

// Scratch calls f with a new directory, which is deleted when f returns, and never before. If the process is killed
// meanwhile, the next Trash deletes it.
func (t *Trash) Scratch(f func(dir string) error) error {
	name := rand.Text()
	t.use(name, true)
	defer t.use(name, false)
	dir := filepath.Join(t.dir, name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	return errors.Join(f(dir), deleteTree(dir))
}

func (t *Trash) use(name string, used bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if used {
		t.scratch[name] = true
	} else {
		delete(t.scratch, name)
	}
}

// used reports whether an entry is a scratch directory in use.
func (t *Trash) used(name string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.scratch[name]
}

func (t *Trash) run() {
	for t.more() {
		names, err := os.ReadDir(t.dir)
		if err != nil {
			t.log.Warn("trash was not read", "err", err)
		}
		for _, e := range names {
			if t.used(e.Name()) {
				continue
			}
			if err := fault.Guard("rootfs", func() error { return deleteTree(filepath.Join(t.dir, e.Name())) }); err != nil {
				t.log.Warn("trash was not deleted", "err", err)
			}
		}
	}
}

func (t *Trash) more() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.sweeping, t.again = t.again, false; !t.sweeping {
		close(t.swept)
	}
	return t.sweeping
}

// Emptied waits until the files of all that was put into the trash before are deleted.
func (t *Trash) Emptied(ctx context.Context) error {
	t.mu.Lock()
	sweeping, swept := t.sweeping, t.swept
	t.mu.Unlock()
	if !sweeping {
		return nil
	}
	select {
	case <-swept:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
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
