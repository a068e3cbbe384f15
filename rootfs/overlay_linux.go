package rootfs

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"cupola/rootfs/internal/thread"
)

// overlay is a mount of lowers, the topmost first and relative to base, below upper.
type overlay struct {
	base               string
	lowers             []string
	point, upper, work string
}

// throwaway calls do with the root of the overlay, mounted in a namespace that ends with the call: no mount is left,
// whatever becomes of this process. The mounts below hidden are taken out of that namespace, so that it does not keep
// them.
func (o overlay) throwaway(hidden string, do func(root *os.File) error) error {
	return thread.Throwaway(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
			return fmt.Errorf("unshare mounts: %w", err)
		}
		// What is unmounted outside goes here, too; what is mounted here stays here.
		if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
			return fmt.Errorf("make mounts slaves: %w", err)
		}
		if err := unmountAll(hidden); err != nil {
			return err
		}
		if err := unix.Chdir(o.base); err != nil {
			return fmt.Errorf("change to %s: %w", o.base, err)
		}
		if err := o.mount(); err != nil {
			return err
		}
		root, err := os.Open(o.point)
		if err != nil {
			return errors.Join(err, unmountAll(o.point))
		}
		err = errors.Join(do(root), root.Close())
		return errors.Join(err, unmountAll(o.point))
	})
}

// mount mounts an overlay whose upper directory will be a lower one of others: it must not refer to those below it by
// anything but the names of files.
func (o overlay) mount() error {
	const plain = ",index=off,metacopy=off,redirect_dir=off"
	opts := overlayOptions(o.lowers, o.upper, o.work) + plain
	if len(opts) >= os.Getpagesize()-len(",volatile") {
		return fmt.Errorf("image has too many layers: %d", len(o.lowers)+1)
	}
	return mountOptions(o.point, opts)
}

// copyRoot gives the directory to the owner, mode and time of the directory from.
func copyRoot(to, from string) error {
	st, err := os.Stat(from)
	if err != nil {
		return err
	}
	if sys, ok := st.Sys().(*syscall.Stat_t); ok && privileged() {
		if err := os.Chown(to, int(sys.Uid), int(sys.Gid)); err != nil {
			return err
		}
	}
	return errors.Join(os.Chmod(to, st.Mode()), os.Chtimes(to, time.Time{}, st.ModTime()))
}
