package container

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// device is a character device that a container may use. One without a name
// has no node in /dev.
type device struct {
	name         string
	major, minor int64 // minor -1 is every minor
}

func allowedDevices() []device {
	return []device{
		{"null", 1, 3}, {"zero", 1, 5}, {"full", 1, 7}, {"random", 1, 8}, {"urandom", 1, 9}, {"tty", 5, 0},
		{"", 5, 2}, {"", 136, -1}, // /dev/ptmx and the terminals of /dev/pts
	}
}

// mountDev makes the one /dev that all containers share, read-only, at dir,
// unless it is there. To make each its own takes libcontainer a third of all
// the time it spends on mounts.
func mountDev(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if is(dir, unix.TMPFS_MAGIC) {
		if _, err := os.Lstat(filepath.Join(dir, "ptmx")); err == nil { // made last
			return nil
		}
		// EINVAL: it is not a mount, but a directory of the tmpfs that contains all.
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil && err != unix.EINVAL {
			return fmt.Errorf("unmount %s: %w", dir, err)
		}
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NOEXEC, "mode=755,size=64k"); err != nil {
		return fmt.Errorf("mount tmpfs on %s: %w", dir, err)
	}
	return furnishDev(dir)
}

func furnishDev(dir string) error {
	var errs []error
	for _, mountPoint := range []string{"pts", "shm"} {
		errs = append(errs, os.Mkdir(filepath.Join(dir, mountPoint), 0o755))
	}
	for _, d := range allowedDevices() {
		if d.name != "" {
			errs = append(errs, makeNode(filepath.Join(dir, d.name), d))
		}
	}
	for _, link := range [][2]string{
		{"/proc/self/fd", "fd"}, {"/proc/self/fd/0", "stdin"}, {"/proc/self/fd/1", "stdout"}, {"/proc/self/fd/2", "stderr"}, {"pts/ptmx", "ptmx"},
	} {
		errs = append(errs, os.Symlink(link[0], filepath.Join(dir, link[1])))
	}
	return errors.Join(errs...)
}

func makeNode(path string, d device) error {
	if err := unix.Mknod(path, unix.S_IFCHR|0o666, int(unix.Mkdev(uint32(d.major), uint32(d.minor)))); err != nil {
		return &os.PathError{Op: "mknod", Path: path, Err: err}
	}
	return os.Chmod(path, 0o666) // whatever the umask
}

// is reports whether dir lies in a file system of that type.
func is(dir string, magic int64) bool {
	var st unix.Statfs_t
	return unix.Statfs(dir, &st) == nil && st.Type == magic
}
