package root

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"cupola/rootfs/disk"
)

// Containers' directories are used again: making a file costs up to a millisecond on an ext4 without a journal on which
// many were deleted in the last minutes, and a container needs half a dozen. Disk images are not: some namespace may
// still have one mounted.
const (
	runSpare = ".spare"
	maxSpare = 64
)

// takeSpare makes a container's directory, of a spare one if there is any.
func (s *Roots) takeSpare(dir string) error {
	d, err := os.Open(s.store.Path(rootsDir, runSpare))
	if err != nil {
		return err
	}
	defer d.Close()
	names, err := d.Readdirnames(1)
	if len(names) == 0 || err != nil {
		return os.Mkdir(dir, 0o700)
	}
	return os.Rename(s.store.Path(rootsDir, runSpare, names[0]), dir) // which refuses when dir is there
}

// retire puts a container's directory, without mounts by now, among the spare ones, or into the trash when there is
// anything in it or no need.
func (s *Roots) retire(dir string) error {
	if !s.reusable(dir) {
		return s.trash.Put(dir)
	}
	return os.Rename(dir, s.store.Path(rootsDir, runSpare, rand.Text()))
}

func (s *Roots) reusable(dir string) bool {
	if n, err := countEntries(s.store.Path(rootsDir, runSpare)); err != nil || n >= maxSpare {
		return false
	}
	// An empty record is none; it goes first, so that no crash leaves a spare directory that seems to hold layers.
	if os.Truncate(filepath.Join(dir, recordFile), 0) != nil {
		return false
	}
	if err := os.Remove(filepath.Join(dir, disk.Image)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	for _, name := range []string{disk.Data, "root", lowerDir} {
		if n, err := countEntries(filepath.Join(dir, name)); err != nil || n > 0 {
			return false
		}
	}
	n, err := countEntries(dir)
	return err == nil && n == len([]string{recordFile, disk.Data, "root", lowerDir})
}

func countEntries(dir string) (int, error) {
	d, err := os.Open(dir)
	if err != nil {
		return 0, err
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	return len(names), err
}

// dropSpares removes what an earlier daemon had spare or ready.
func (s *Roots) dropSpares() (err error) {
	for _, name := range []string{runSpare, runReady} {
		entries, errDir := os.ReadDir(s.store.Path(rootsDir, name))
		err = errors.Join(err, errDir)
		for _, e := range entries {
			err = errors.Join(err, s.drop(s.store.Path(rootsDir, name, e.Name())))
		}
	}
	return err
}

// drop removes a directory that no container has.
func (s *Roots) drop(dir string) error {
	if err := s.disks.Remove(dir); err != nil {
		return err
	}
	return s.trash.Put(dir)
}
