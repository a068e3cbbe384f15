package overlay

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"cupola/runtime/thread"
	"cupola/runtime/users"
)

// Shift mounts a directory at a place, with the owners to instead of from, and returns it. Before Linux 6.15 an overlay
// refuses layers that are mounted nowhere.
func Shift(dir *os.File, from, to users.Range, at string) (*os.File, error) {
	clone, err := users.Shift(dir, from, to)
	if err != nil {
		return nil, err
	}
	if err := users.Attach(clone, at); err != nil {
		return nil, errors.Join(err, clone.Close())
	}
	return clone, nil
}

// Open is an overlay whose directories are open. It names them by their descriptors: that is short enough for any image,
// and containers can read the options of their mounts.
type Open struct {
	Point       string
	lowers      []*os.File // the topmost first
	upper, work *os.File
}

// Lower adds a directory below those added before; name is relative to base.
func (o *Open) Lower(base *os.File, name string) error {
	fd, err := unix.Openat(int(base.Fd()), name, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: name, Err: err}
	}
	o.lowers = append(o.lowers, os.NewFile(uintptr(fd), name))
	return nil
}

// Writable sets the directories that take what is written.
func (o *Open) Writable(upper, work string) (err error) {
	if o.upper, err = OpenPath(upper); err != nil {
		return err
	}
	o.work, err = OpenPath(work)
	return err
}

// Mount mounts the overlay.
func (o *Open) Mount() error {
	var names []string
	for _, f := range o.lowers {
		names = append(names, named(f))
	}
	opts := options(names, named(o.upper), named(o.work))
	if len(opts) >= os.Getpagesize()-len(",volatile") {
		return fmt.Errorf("overlay of %d layers: their names are too long for one mount", len(o.lowers))
	}
	return mount(o.Point, opts)
}

// Close closes the directories; the mount stays.
func (o *Open) Close() {
	for _, f := range append(o.lowers, o.upper, o.work) {
		if f != nil {
			f.Close()
		}
	}
}

// named is the name by which this process finds an open file.
func named(f *os.File) string { return fmt.Sprintf("/proc/self/fd/%d", f.Fd()) }

// OpenPath opens a directory with O_PATH.
func OpenPath(name string) (*os.File, error) {
	return os.OpenFile(name, unix.O_PATH|unix.O_DIRECTORY, 0)
}

// TryShift reports why containers whose files lie in dir cannot have their own users; nil where they can: the kernel has
// idmapped mounts (Linux 5.19 for overlays), and so has the file system of dir. It mounts such an overlay in a mount
// namespace that ends with it, and leaves nothing.
func TryShift(dir string, ids users.Range) error {
	tmp, err := os.MkdirTemp(dir, ".new-")
	if err != nil {
		return err
	}
	err = thread.Throwaway("rootfs", func() error { return tryShift(tmp, ids) })
	return errors.Join(err, os.RemoveAll(tmp))
}

// someUser is any ID except root's.
const someUser = 2000

func tryShift(dir string, ids users.Range) error {
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("unshare mounts: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	path := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"store", "store/layer", "lower", "upper", "work", "root"} {
		if err := os.Mkdir(path(name), 0o755); err != nil {
			return err
		}
	}
	if err := errors.Join(os.WriteFile(path("store/layer/file"), nil, 0o600), os.Chown(path("store/layer/file"), int(ids.Host(someUser)), int(ids.Host(someUser)))); err != nil {
		return err
	}
	store, err := OpenPath(path("store"))
	if err != nil {
		return err
	}
	defer store.Close()
	to := users.Range{Base: ids.Base + ids.Size, Size: ids.Size}
	base, err := Shift(store, ids, to, path("lower"))
	if err != nil {
		return err
	}
	defer base.Close()
	o := Open{Point: path("root")}
	defer o.Close()
	if err := errors.Join(o.Lower(base, "layer"), o.Writable(path("upper"), path("work")), o.Mount()); err != nil {
		return err
	}
	info, err := os.Stat(path("root/file"))
	if err != nil {
		return err
	}
	if st, ok := info.Sys().(*syscall.Stat_t); !ok || st.Uid != to.Host(someUser) {
		return errors.New("an overlay does not show the owners of idmapped layers")
	}
	return nil
}
