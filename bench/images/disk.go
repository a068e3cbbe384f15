package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// disk is an empty file system in a file. On one that is in use, a round would
// pay for the files of the round before: ext4 looks at every inode that was freed
// in the last minute before it takes another one.
type disk struct{ file, dir string }

func newDisk(ctx context.Context, bytes int64) (d *disk, err error) {
	base, err := os.MkdirTemp("", "img-") // short: podman takes no path of more than 50 characters
	if err != nil {
		return nil, err
	}
	d = &disk{filepath.Join(base, "disk"), filepath.Join(base, "root")}
	if err := d.mount(ctx, bytes); err != nil {
		return nil, errors.Join(err, os.RemoveAll(base))
	}
	return d, nil
}

func (d *disk) mount(ctx context.Context, bytes int64) error {
	err := errors.Join(os.Mkdir(d.dir, 0o711), os.WriteFile(d.file, nil, 0o600))
	if err := errors.Join(err, os.Truncate(d.file, bytes)); err != nil {
		return err
	}
	for _, args := range [][]string{
		{"mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=1", d.file},
		{"mount", "-o", "loop,noinit_itable", d.file, d.dir},
	} {
		if out, err := exec.CommandContext(ctx, args[0], args[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w\n%s", args[0], err, out)
		}
	}
	return nil
}

// sync waits until all of it is in the file, and on the disk below.
func (d *disk) sync() error {
	for _, name := range []string{d.dir, d.file} {
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		if err := errors.Join(unix.Syncfs(int(f.Fd())), f.Close()); err != nil {
			return err
		}
	}
	return nil
}

func (d *disk) close() error {
	return errors.Join(unix.Unmount(d.dir, 0), os.RemoveAll(filepath.Dir(d.file)))
}

// inOwnMounts says in the environment of the program that it has its own mounts.
const inOwnMounts = "BENCH_IMAGES_OWN_MOUNTS"

// ownMounts runs the program again where its mounts go with it, however it ends.
func ownMounts(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, "/proc/self/exe", os.Args[1:]...)
	cmd.Args[0] = os.Args[0]
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), inOwnMounts+"=yes")
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGTERM}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	return cmd.Run()
}
