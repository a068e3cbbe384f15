package container

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"cupola/runtime/thread"
)

// newMountNamespace makes the namespace that those of containers begin as copies of (see launch.Request.MountNS). It lasts
// as long as the file is open.
func newMountNamespace() (ns *os.File, err error) {
	err = thread.Throwaway("container", func() (err error) {
		ns, err = leaveMounts()
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("make a mount namespace for containers: %w", err)
	}
	return ns, nil
}

// leaveMounts puts the thread into a new mount namespace. The kernel mounts a container's /proc only where one is seen whole.
func leaveMounts() (*os.File, error) {
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return nil, err
	}
	// Any directory does to build the new root on, as this namespace is left for it.
	const base = "/proc"
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return nil, err
	}
	proc, err := unix.OpenTree(unix.AT_FDCWD, base, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
	if err != nil {
		return nil, err
	}
	defer unix.Close(proc)
	if err := unix.Mount("tmpfs", base, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "mode=755,nr_inodes=8,size=4k"); err != nil {
		return nil, err
	}
	if err := unix.Chdir(base); err != nil {
		return nil, err
	}
	if err := errors.Join(unix.Mkdir("proc", 0o755), unix.Mkdir("root", 0o755)); err != nil {
		return nil, err
	}
	if err := unix.MoveMount(proc, "", unix.AT_FDCWD, "proc", unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return nil, err
	}
	if err := errors.Join(unix.PivotRoot(".", "."), unix.Unmount(".", unix.MNT_DETACH), unix.Chdir("/")); err != nil {
		return nil, err
	}
	return os.Open("/proc/thread-self/ns/mnt")
}
