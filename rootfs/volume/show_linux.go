package volume

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"cupola/runtime/users"
)

// openDirectory opens a directory below data without following any link, so that
// it is the volume's whatever containers do to it meanwhile. With an owner what is
// missing is made: the last is the owner's alone, those above are root's.
func openDirectory(data string, parts []string, root uint32, owner *Owner) (*os.File, error) {
	const flags = unix.O_PATH | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	fd, err := unix.Open(data, flags, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), data)
	for n, part := range parts {
		last := n == len(parts)-1
		next, err := unix.Openat(fd, part, flags, 0)
		if err == unix.ENOENT && owner != nil {
			next, err = makeDirectory(fd, part, last, root)
		}
		if err == nil && last && owner != nil {
			err = unix.Fchownat(next, "", int(owner.UID), int(owner.GID), unix.AT_EMPTY_PATH)
		}
		f.Close()
		if err != nil {
			return nil, errors.Join(err, closed(next))
		}
		fd, f = next, os.NewFile(uintptr(next), part)
	}
	return f, nil
}

func makeDirectory(above int, name string, last bool, root uint32) (int, error) {
	mode := uint32(0o755)
	if last {
		mode = 0o700
	}
	if err := unix.Mkdirat(above, name, mode); err != nil && err != unix.EEXIST {
		return -1, err
	}
	fd, err := unix.Openat(above, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	// The daemon's umask does not count.
	err = os.Chmod(fmt.Sprintf("/proc/self/fd/%d", fd), os.FileMode(mode))
	return fd, errors.Join(err, unix.Fchownat(fd, "", int(root), int(root), unix.AT_EMPTY_PATH))
}

func closed(fd int) error {
	if fd < 0 {
		return nil
	}
	return unix.Close(fd)
}

// bind mounts an open directory at a place, which has at most one mount, as the
// users to own it there.
func (s *Store) bind(f *os.File, to users.Range, at string) error {
	if err := unbind(at); err != nil {
		return err
	}
	if to != s.cfg.Users {
		clone, err := users.Shift(f, s.cfg.Users, to)
		if err != nil {
			return err
		}
		defer clone.Close()
		return users.Attach(clone, at)
	}
	return unix.Mount(fmt.Sprintf("/proc/self/fd/%d", f.Fd()), at, "", unix.MS_BIND, "")
}

// unbind unmounts what is mounted at a place. Containers that have it keep it.
func unbind(at string) error {
	for {
		switch err := unix.Unmount(at, unix.UMOUNT_NOFOLLOW|unix.MNT_DETACH); err {
		case nil:
		case unix.EINVAL, unix.ENOENT: // no mount, or nothing there
			return nil
		default:
			return fmt.Errorf("unmount %s: %w", at, err)
		}
	}
}
