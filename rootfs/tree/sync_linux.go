package tree

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"cupola/runtime/durable"
	"cupola/runtime/fault"
)

// Sync writes all of the file system that dir lies on to the disk.
func Sync(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return unix.Syncfs(int(d.Fd()))
}

// How SyncTree syncs. Each file takes a fraction of a millisecond when several are synced at once, as they share commits
// of the journal.
const (
	maxSynced = 2000
	syncing   = 8
)

var errMany = errors.New("many files")

// SyncTree is Sync of the files and directories below dir, without what others wrote to the file system, unless there are so
// many that Sync is faster.
func SyncTree(dir string) error {
	var names []string
	err := filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if err == nil && (e.IsDir() || e.Type().IsRegular()) {
			names = append(names, name)
		}
		if len(names) > maxSynced {
			return errMany
		}
		return err
	})
	if errors.Is(err, errMany) {
		return Sync(dir)
	}
	if err != nil {
		return err
	}
	var group fault.Group
	group.SetLimit(syncing)
	for _, name := range names {
		group.Go(fault.ErrFunc("rootfs", func() error { return durable.Sync(name) }))
	}
	return group.Wait()
}
