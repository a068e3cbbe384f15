package tree

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"cupola/runtime/users"
)

// openIn opens name as a process whose root is root would, following no link into /proc.
func openIn(root *os.File, name string, flags uint64) (*os.File, error) {
	how := unix.OpenHow{Flags: flags | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS}
	for {
		fd, err := unix.Openat2(int(root.Fd()), name, &how)
		if err == unix.EAGAIN || err == unix.EINTR {
			continue // a rename elsewhere raced with ".."
		}
		if err != nil {
			return nil, err
		}
		return os.NewFile(uintptr(fd), name), nil
	}
}

// OpenDir opens a directory as a process whose root is root would.
func OpenDir(root *os.File, name string) (*os.File, error) {
	return openIn(root, name, unix.O_RDONLY|unix.O_DIRECTORY)
}

// OpenRegular opens a regular file, never through a link at its end. It does not wait: a FIFO without a writer would block
// for ever.
func OpenRegular(root *os.File, name string) (*os.File, error) {
	return openOnly(root, name, unix.O_NOFOLLOW, fs.FileMode.IsRegular)
}

// Find opens a regular file or a directory as OpenRegular does, and through a link at its end, too.
func Find(root *os.File, name string) (*os.File, error) {
	return openOnly(root, name, 0, func(m fs.FileMode) bool { return m.IsRegular() || m.IsDir() })
}

func openOnly(root *os.File, name string, flags uint64, accepted func(fs.FileMode) bool) (*os.File, error) {
	f, err := openIn(root, name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY|flags)
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	if err == nil && !accepted(st.Mode()) {
		err = errors.New("not a regular file")
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// OpenFollowing is OpenRegular for trees that no container runs in: the name may be a link within the root.
func OpenFollowing(root *os.File, name string) (*os.File, error) {
	return openIn(root, name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY)
}

// Exists reports whether name is there, even as a link to nothing.
func Exists(root *os.File, name string) bool {
	f, err := openIn(root, name, unix.O_PATH|unix.O_NOFOLLOW)
	if err == nil {
		f.Close()
	}
	return err == nil
}

// AddLink makes a symbolic link at the top of root unless something has its name.
func AddLink(root *os.File, name, to string, ids users.Range) error {
	err := unix.Symlinkat(to, int(root.Fd()), name)
	if err == unix.EEXIST {
		return nil
	}
	if err == nil && Privileged() {
		id := int(ids.Host(0))
		err = unix.Fchownat(int(root.Fd()), name, id, id, unix.AT_SYMLINK_NOFOLLOW)
	}
	return err
}

// makeDir makes a directory of mode 0755, whatever the umask, unless it is there.
func makeDir(up *os.File, base string, o Owner, ids users.Range) error {
	err := unix.Mkdirat(int(up.Fd()), base, 0o700)
	if err == unix.EEXIST {
		return nil
	}
	if err != nil {
		return err
	}
	fd, err := unix.Openat(int(up.Fd()), base, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	dir := os.NewFile(uintptr(fd), base)
	defer dir.Close()
	if Privileged() {
		err = dir.Chown(int(ids.Host(o.UID)), int(ids.Host(o.GID)))
	}
	return errors.Join(err, dir.Chmod(0o755))
}

// ReplaceFile puts a file into dir in one step, replacing what has its name (a link itself, not what it points to).
func ReplaceFile(dir *os.File, base string, content []byte, mode fs.FileMode, o Owner, ids users.Range) error {
	tmp := ".new-" + rand.Text()
	fd, err := unix.Openat(int(dir.Fd()), tmp, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), tmp)
	_, err = f.Write(content)
	if err == nil && Privileged() {
		err = f.Chown(int(ids.Host(o.UID)), int(ids.Host(o.GID)))
	}
	err = errors.Join(err, f.Chmod(mode), f.Close())
	if err == nil {
		err = unix.Renameat(int(dir.Fd()), tmp, int(dir.Fd()), base)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("replace %s: %w", base, err), unix.Unlinkat(int(dir.Fd()), tmp, 0))
	}
	return nil
}

// CopyRoot gives the directory to the owner, mode and time of the directory from.
func CopyRoot(to, from string) error {
	st, err := os.Stat(from)
	if err != nil {
		return err
	}
	if sys, ok := st.Sys().(*syscall.Stat_t); ok && Privileged() {
		if err := os.Chown(to, int(sys.Uid), int(sys.Gid)); err != nil {
			return err
		}
	}
	return errors.Join(os.Chmod(to, st.Mode()), os.Chtimes(to, time.Time{}, st.ModTime()))
}

// ReadLink is where a symbolic link points to; "" if the name is none.
func ReadLink(root *os.File, name string) (string, error) {
	f, err := openIn(root, name, unix.O_PATH|unix.O_NOFOLLOW)
	if err != nil {
		return "", err
	}
	defer f.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFLNK {
		return "", err
	}
	to := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(int(f.Fd()), "", to)
	if err != nil {
		return "", err
	}
	return string(to[:n]), nil
}
