package rootfs

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
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

func openDir(root *os.File, name string) (*os.File, error) {
	return openIn(root, name, unix.O_RDONLY|unix.O_DIRECTORY)
}

// openRegular opens without waiting, as a FIFO without a writer would else block for ever.
func openRegular(root *os.File, name string) (*os.File, error) {
	f, err := openIn(root, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY)
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	if err == nil && !st.Mode().IsRegular() {
		err = errors.New("not a regular file")
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// openFollowing is openRegular for trees that no container runs in: the name may be a link within the root.
func openFollowing(root *os.File, name string) (*os.File, error) {
	return openIn(root, name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY)
}

// existsIn tells whether name is there, be it a link to nothing.
func existsIn(root *os.File, name string) bool {
	f, err := openIn(root, name, unix.O_PATH|unix.O_NOFOLLOW)
	if err == nil {
		f.Close()
	}
	return err == nil
}

// adoptLink makes a symbolic link at the top of root unless something bears its name.
func (m IDMap) adoptLink(root *os.File, name, to string) error {
	err := unix.Symlinkat(to, int(root.Fd()), name)
	if err == unix.EEXIST {
		return nil
	}
	if err == nil && privileged() {
		id := int(m.Host(0))
		err = unix.Fchownat(int(root.Fd()), name, id, id, unix.AT_SYMLINK_NOFOLLOW)
	}
	return err
}

// makeDir makes a directory of mode 0755, whatever the umask, unless it is there.
func (m IDMap) makeDir(up *os.File, base string, o Owner) error {
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
	if privileged() {
		err = dir.Chown(int(m.Host(o.UID)), int(m.Host(o.GID)))
	}
	return errors.Join(err, dir.Chmod(0o755))
}

func (m IDMap) replaceFile(dir *os.File, base string, content []byte, mode fs.FileMode, o Owner) error {
	tmp := ".new-" + rand.Text()
	fd, err := unix.Openat(int(dir.Fd()), tmp, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), tmp)
	_, err = f.Write(content)
	if err == nil && privileged() {
		err = f.Chown(int(m.Host(o.UID)), int(m.Host(o.GID)))
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
