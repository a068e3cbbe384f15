package disk

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// The kernel's numbers of <linux/fs.h> that x/sys does not have.
const (
	fiFreeze = 0xc0045877
	fiThaw   = 0xc0045878
)

func freeze(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	// What is dirty is written first, while writers need not wait for it.
	if err := unix.Syncfs(int(d.Fd())); err != nil {
		return fmt.Errorf("sync %s: %w", dir, err)
	}
	if err := unix.IoctlSetInt(int(d.Fd()), fiFreeze, 0); err != nil {
		return fmt.Errorf("freeze %s: %w", dir, err)
	}
	return nil
}

func thaw(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := unix.IoctlSetInt(int(d.Fd()), fiThaw, 0); err != nil && !errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("thaw %s: %w", dir, err)
	}
	return nil
}
