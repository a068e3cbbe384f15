package overlay

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"cupola/runtime/thread"
)

// Build calls do with the root of the overlay, mounted in a namespace that ends with the call: no mount is left, whatever
// becomes of this process. The mounts below hidden are unmounted in that namespace, so that it does not keep them.
func (o Overlay) Build(hidden string, do func(root *os.File) error) error {
	return thread.Throwaway("rootfs", func() error {
		if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
			return fmt.Errorf("unshare mounts: %w", err)
		}
		// What is unmounted outside goes here, too; what is mounted here stays here.
		if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
			return fmt.Errorf("make mounts slaves: %w", err)
		}
		if err := Unmount(hidden); err != nil {
			return err
		}
		if err := unix.Chdir(o.Base); err != nil {
			return fmt.Errorf("change to %s: %w", o.Base, err)
		}
		if err := o.mount(); err != nil {
			return err
		}
		root, err := os.Open(o.Point)
		if err != nil {
			return errors.Join(err, Unmount(o.Point))
		}
		err = errors.Join(do(root), root.Close())
		return errors.Join(err, Unmount(o.Point))
	})
}

// mount mounts an overlay whose upper directory will be a lower directory of others: it must not refer to those below it by
// anything but the names of files.
func (o Overlay) mount() error {
	const plain = ",index=off,metacopy=off,redirect_dir=off"
	opts := options(o.Lowers, o.Upper, o.Work) + plain
	if len(opts) >= os.Getpagesize()-len(",volatile") {
		return fmt.Errorf("image has too many layers: %d", len(o.Lowers)+1)
	}
	return mount(o.Point, opts)
}
