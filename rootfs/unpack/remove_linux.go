package unpack

import (
	"os"
	"path"

	"golang.org/x/sys/unix"
)

// pathSet holds paths and all the directories above them.
type pathSet map[string]struct{}

func (s pathSet) add(name string) {
	for name != "." && name != "/" {
		if _, ok := s[name]; ok {
			return
		}
		s[name] = struct{}{}
		name = path.Dir(name)
	}
}

// removeAll removes base of the directory dirfd and all below it, following no link.
func removeAll(dirfd int, base string) error {
	err := unix.Unlinkat(dirfd, base, 0)
	if err == nil || err == unix.ENOENT {
		return nil
	}
	if err != unix.EISDIR && err != unix.EPERM {
		return err
	}
	if err := inDir(dirfd, base, func(fd int, child string) error { return removeAll(fd, child) }); err != nil {
		return err
	}
	return unix.Unlinkat(dirfd, base, unix.AT_REMOVEDIR)
}

// removeOthers removes what is below the directory fd, which bears the name dir, but for keep. It looks at no directory
// twice: all that a directory in done still holds stays.
func removeOthers(fd int, dir string, keep pathSet, done inodes) error {
	if known, err := done.add(fd); known || err != nil {
		return err
	}
	return inDir(fd, ".", func(fd int, child string) error {
		name := path.Join(dir, child)
		if _, ok := keep[name]; !ok {
			return removeAll(fd, child)
		}
		if !isDir(fd, child) {
			return nil
		}
		sub, err := unix.Openat(fd, child, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer closeFD(sub)
		return removeOthers(sub, name, keep, done)
	})
}

// inodes are directories of one file system, by their inodes' numbers.
type inodes map[uint64]struct{}

// add reports whether fd was there before.
func (i inodes) add(fd int) (known bool, err error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return false, err
	}
	_, known = i[st.Ino]
	i[st.Ino] = struct{}{}
	return known, nil
}

// inDir calls do for every name in the directory base of dirfd.
func inDir(dirfd int, base string, do func(fd int, child string) error) error {
	fd, err := unix.Openat(dirfd, base, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	d := os.NewFile(uintptr(fd), base)
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := do(fd, name); err != nil {
			return err
		}
	}
	return nil
}
