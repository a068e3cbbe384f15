package users

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Shift clones the mount of an open directory from that directory on, without what
// is mounted below it, and shows the files of from as those of to. What root of the
// host has stays root's. The clone is mounted nowhere until Attach, and goes with
// its file.
func Shift(dir *os.File, from, to Range) (*os.File, error) {
	ns, err := namespace(to.Base, idMap{from.Base, to.Base, to.Size}, idMap{0, 0, 1})
	if err != nil {
		return nil, err
	}
	defer ns.Close()
	fd, err := unix.OpenTree(int(dir.Fd()), "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH)
	if err != nil {
		return nil, fmt.Errorf("clone the mount of %s: %w", dir.Name(), err)
	}
	clone := os.NewFile(uintptr(fd), dir.Name())
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_IDMAP, Userns_fd: uint64(ns.Fd())}
	if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH, &attr); err != nil {
		return nil, errors.Join(fmt.Errorf("map the owners of %s: %w", dir.Name(), err), clone.Close())
	}
	return clone, nil
}

// Attach mounts what Shift returned.
func Attach(clone *os.File, at string) error {
	if err := unix.MoveMount(int(clone.Fd()), "", unix.AT_FDCWD, at, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return fmt.Errorf("attach mount at %s: %w", at, err)
	}
	return nil
}
