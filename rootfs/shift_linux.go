package rootfs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"cupola/rootfs/internal/thread"
	"cupola/runtime/contract"
	"cupola/runtime/users"
)

// mountRoot mounts the overlay that is a container's root. Its layers are named by descriptors: that is short enough for
// any image, and containers read the options of their mounts.
func (s *Store) mountRoot(r Request, lowers []string, upper, work string) error {
	base, err := s.openBase(r)
	if err != nil {
		return err
	}
	defer base.Close()
	o := opened{point: s.rootPath(r.ID)}
	defer o.close()
	for _, name := range lowers {
		if err := o.lower(base, name); err != nil {
			return err
		}
	}
	if err := errors.Join(o.writable(upper, work), o.mount()); err != nil || r.ShowLayers {
		return err
	}
	return unmountAll(s.lowerPath(r.ID)) // the overlay has its own clones of it
}

// openBase opens the store's directory as the container's users own its files.
func (s *Store) openBase(r Request) (*os.File, error) {
	dir, err := openPath(s.cfg.Dir)
	if err != nil || !s.shifted(r.Users) {
		return dir, err
	}
	defer dir.Close()
	return shiftTo(dir, s.cfg.IDMap, r.Users, s.lowerPath(r.ID))
}

// shiftTo mounts a directory at a place, with the owners to instead of from, and returns it. An overlay refuses layers
// that are mounted nowhere before Linux 6.15.
func shiftTo(dir *os.File, from, to IDMap, at string) (*os.File, error) {
	clone, err := users.Shift(dir, from.users(), to.users())
	if err != nil {
		return nil, err
	}
	if err := users.Attach(clone, at); err != nil {
		return nil, errors.Join(err, clone.Close())
	}
	return clone, nil
}

// opened is an overlay whose directories are open.
type opened struct {
	point       string
	lowers      []*os.File // the topmost first
	upper, work *os.File
}

func (o *opened) lower(base *os.File, name string) error {
	fd, err := unix.Openat(int(base.Fd()), name, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: name, Err: err}
	}
	o.lowers = append(o.lowers, os.NewFile(uintptr(fd), name))
	return nil
}

func (o *opened) writable(upper, work string) (err error) {
	if o.upper, err = openPath(upper); err != nil {
		return err
	}
	o.work, err = openPath(work)
	return err
}

func (o *opened) mount() error {
	var names []string
	for _, f := range o.lowers {
		names = append(names, named(f))
	}
	opts := overlayOptions(names, named(o.upper), named(o.work))
	if len(opts) >= os.Getpagesize()-len(",volatile") {
		return fmt.Errorf("overlay of %d layers: their names are too long for one mount", len(o.lowers))
	}
	return mountOptions(o.point, opts)
}

func (o *opened) close() {
	for _, f := range append(o.lowers, o.upper, o.work) {
		if f != nil {
			f.Close()
		}
	}
}

// named is the name by which this process finds an open file.
func named(f *os.File) string { return fmt.Sprintf("/proc/self/fd/%d", f.Fd()) }

func openPath(name string) (*os.File, error) {
	return os.OpenFile(name, unix.O_PATH|unix.O_DIRECTORY, 0)
}

// TryShift says why containers whose files lie in dir cannot have their own users; nil where they can. It mounts an
// overlay as theirs are, in a mount namespace that ends with it, and leaves nothing.
func TryShift(dir string, ids IDMap) error {
	tmp, err := os.MkdirTemp(dir, ".new-")
	if err != nil {
		return err
	}
	err = thread.Throwaway(func() error { return tryShift(tmp, ids) })
	return errors.Join(err, os.RemoveAll(tmp))
}

func tryShift(dir string, ids IDMap) error {
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("unshare mounts: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	path := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"store", "store/layer", lowerDir, "upper", "work", "root"} {
		if err := os.Mkdir(path(name), 0o755); err != nil {
			return err
		}
	}
	if err := errors.Join(os.WriteFile(path("store/layer/file"), nil, 0o600), os.Chown(path("store/layer/file"), int(ids.Host(contract.VcapID)), int(ids.Host(contract.VcapID)))); err != nil {
		return err
	}
	store, err := openPath(path("store"))
	if err != nil {
		return err
	}
	defer store.Close()
	to := IDMap{Base: ids.Base + ids.Size, Size: ids.Size}
	base, err := shiftTo(store, ids, to, path(lowerDir))
	if err != nil {
		return err
	}
	defer base.Close()
	o := opened{point: path("root")}
	defer o.close()
	if err := errors.Join(o.lower(base, "layer"), o.writable(path("upper"), path("work")), o.mount()); err != nil {
		return err
	}
	info, err := os.Stat(path("root/file"))
	if err != nil {
		return err
	}
	if st, ok := info.Sys().(*syscall.Stat_t); !ok || st.Uid != to.Host(contract.VcapID) {
		return errors.New("an overlay does not show the owners of idmapped layers")
	}
	return nil
}

// trySharing is TryShift in the store, where only root can try.
func (s *Store) trySharing() error {
	if !privileged() || s.cfg.IDMap.Size == 0 {
		return errors.New("this process cannot map users")
	}
	return TryShift(s.path("trash"), s.cfg.IDMap)
}
