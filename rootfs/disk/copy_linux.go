package disk

import (
	"errors"
	"os"
	"path/filepath"
)

// Copy makes in to a disk of the size of the open one in from, with all that is in that, which no container may have.
// A disk that is not a separate file system is an error. If it is killed before it is done, the next Open makes the
// disk in from writable again.
func (d *Disks) Copy(from, to string) error {
	if !d.Own(from) {
		return errors.New("it has no separate file system to copy, since there was no loop device when it was made")
	}
	data := filepath.Join(from, Data)
	if err := still(data); err != nil {
		return err
	}
	err := cloneImage(from, to)
	if fault := remount(data, 0); err != nil || fault != nil {
		return errors.Join(err, fault)
	}
	return d.Open(to)
}

func cloneImage(from, to string) error {
	in, err := os.Open(filepath.Join(from, Image))
	if err != nil {
		return err
	}
	defer in.Close()
	if err := os.Mkdir(filepath.Join(to, Data), 0o700); err != nil {
		return err
	}
	return cloneSparse(in, filepath.Join(to, Image))
}
