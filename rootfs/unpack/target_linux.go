package unpack

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"time"

	"golang.org/x/sys/unix"
)

// maxDirs is how many directories stay open: archives list files by directory, so a few hits are all hits.
const maxDirs = 64

// target writes below one directory. Every path is resolved by openat2, so that no entry and no other process that
// writes there meanwhile can lead a write out of it.
type target struct {
	dirFile *os.File // keeps root open
	root    int
	o       Options
	resolve uint64
	dirs    map[string]int // open directories by their path in the archive
	late    []entry        // directories whose mode and time are set last, since filling them changes both
	mine    pathSet        // of an image's layer: what an opaque mark must leave
	// bare are directories where nothing of lower layers is left. What comes later is this layer's, also where a new
	// directory has the number of a removed one. A layer of many marks would else walk its tree for each (CVE-2026-95838).
	bare  inodes
	parts []byte // of an entry and its twin
}

func newTarget(dir *os.File, o Options) *target {
	t := &target{dirFile: dir, root: int(dir.Fd()), o: o, dirs: map[string]int{}, mine: pathSet{}, bare: inodes{}}
	t.resolve = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS
	if o.Image {
		t.resolve = unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS
	}
	return t
}

func (t *target) openDir(dir string) (int, error) {
	return openat2(t.root, dir, &unix.OpenHow{Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: t.resolve})
}

// openat2 retries what the kernel asks to be retried: a rename elsewhere during the walk of "..".
func openat2(dirfd int, name string, how *unix.OpenHow) (int, error) {
	for {
		fd, err := unix.Openat2(dirfd, name, how)
		if err != unix.EAGAIN && err != unix.EINTR {
			return fd, err
		}
	}
}

// parent opens the directory that holds name, making what is missing above it.
func (t *target) parent(name string) (int, string, error) {
	dir, base := path.Split(name)
	fd, err := t.cached(path.Clean(dir))
	if err != nil {
		return -1, "", t.fault(name, err)
	}
	if t.o.Image {
		t.mine.add(name)
	}
	return fd, base, nil
}

func (t *target) cached(dir string) (int, error) {
	if dir == "." {
		return t.root, nil
	}
	if fd, ok := t.dirs[dir]; ok {
		return fd, nil
	}
	fd, err := t.openDir(dir)
	if err == unix.ENOENT {
		fd, err = t.makeParents(dir)
	}
	if err != nil {
		return -1, err
	}
	if len(t.dirs) >= maxDirs {
		t.forget()
	}
	t.dirs[dir] = fd
	return fd, nil
}

// makeParents makes a directory that no entry names, or none yet, as root's with mode 0755.
func (t *target) makeParents(dir string) (int, error) {
	up, base := path.Split(dir)
	fd, err := t.cached(path.Clean(up))
	if err != nil {
		return -1, err
	}
	err = unix.Mkdirat(fd, base, 0o700)
	if err == nil {
		err = t.own(fd, base)
	}
	if err != nil && err != unix.EEXIST {
		return -1, err
	}
	return t.openDir(dir)
}

func (t *target) own(dirfd int, base string) error {
	fd, err := unix.Openat(dirfd, base, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer closeFD(fd)
	if t.o.Owner != nil {
		uid, gid := t.o.Owner(0, 0)
		if err := unix.Fchown(fd, uid, gid); err != nil {
			return err
		}
	}
	return unix.Fchmod(fd, 0o755)
}

// closeFD closes a descriptor through which nothing was written.
func closeFD(fd int) { _ = unix.Close(fd) }

func (t *target) forget() {
	for _, fd := range t.dirs {
		closeFD(fd)
	}
	clear(t.dirs)
}

func (t *target) chown(dirfd int, base string, e entry) error {
	if t.o.Owner == nil {
		return nil
	}
	uid, gid := t.o.Owner(e.uid, e.gid)
	return unix.Fchownat(dirfd, base, uid, gid, unix.AT_SYMLINK_NOFOLLOW)
}

// fault says which entry an error of the kernel befell; those that only the archive's own shape can cause are blamed on it.
func (t *target) fault(name string, err error) error {
	switch err {
	case unix.ELOOP, unix.EXDEV:
		return &EntryError{Name: name, Reason: "goes through a symbolic link"}
	case unix.ENOTDIR, unix.EEXIST, unix.EISDIR, unix.ENOTEMPTY:
		return &EntryError{Name: name, Reason: "contradicts an earlier entry"}
	case unix.ENAMETOOLONG:
		return &EntryError{Name: name, Reason: "has a name that is too long"}
	}
	return fmt.Errorf("unpack %s: %w", name, err)
}

func (t *target) dir(e entry) error {
	if e.name == "." {
		if t.o.Image {
			t.late = append(t.late, e)
		}
		return nil
	}
	fd, base, err := t.parent(e.name)
	if err != nil {
		return err
	}
	err = unix.Mkdirat(fd, base, 0o700)
	if err == unix.EEXIST && !isDir(fd, base) {
		if err = t.clear(fd, base); err == nil {
			err = unix.Mkdirat(fd, base, 0o700)
		}
	}
	if err != nil && err != unix.EEXIST {
		return t.fault(e.name, err)
	}
	if err := t.chown(fd, base, e); err != nil {
		return t.fault(e.name, err)
	}
	t.late = append(t.late, e)
	return nil
}

// clear removes what stands in an entry's place. An image's layers may replace anything by anything; elsewhere only
// files and links give way, as in every other tar.
func (t *target) clear(dirfd int, base string) error {
	err := unix.Unlinkat(dirfd, base, 0)
	if err != unix.EISDIR && err != unix.EPERM {
		return err
	}
	if !t.o.Image {
		return unix.EEXIST
	}
	t.forget()
	return removeAll(dirfd, base)
}

func isDir(dirfd int, base string) bool {
	var st unix.Stat_t
	return unix.Fstatat(dirfd, base, &st, unix.AT_SYMLINK_NOFOLLOW) == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR
}

// create runs do, and once more after clearing the way when something already bears the name.
func (t *target) create(dirfd int, base string, do func() error) error {
	err := do()
	if err == unix.EEXIST {
		if err = t.clear(dirfd, base); err == nil {
			err = do()
		}
	}
	return err
}

func (t *target) file(e entry, r io.Reader, buf []byte) error {
	if e.name == "." {
		return &EntryError{Name: e.name, Reason: "replaces the root with a file"}
	}
	dirfd, base, err := t.parent(e.name)
	if err != nil {
		return err
	}
	if twin, ok := t.twin(e); ok {
		if f, err := os.Open(twin.path); err == nil { // without it, the file is written
			defer f.Close()
			if r, err = t.share(dirfd, base, e, twin, f, r); r == nil || err != nil {
				return err
			}
		}
	}
	var fd int
	err = t.create(dirfd, base, func() (err error) {
		fd, err = unix.Openat(dirfd, base, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
		return err
	})
	if err != nil {
		return t.fault(e.name, err)
	}
	err = t.fill(fd, e, r, buf)
	if cerr := unix.Close(fd); err == nil && cerr != nil {
		err = t.fault(e.name, cerr)
	}
	return err
}

func (t *target) fill(fd int, e entry, r io.Reader, buf []byte) error {
	if err := writeSparse(fd, e.name, r, buf); err != nil {
		return err
	}
	if t.o.Owner != nil {
		uid, gid := t.o.Owner(e.uid, e.gid)
		if err := unix.Fchown(fd, uid, gid); err != nil {
			return t.fault(e.name, err)
		}
	}
	if err := unix.Fchmod(fd, unixMode(e.mode)); err != nil { // after the owner: chown drops set-id bits
		return t.fault(e.name, err)
	}
	if err := t.setXattrs(fd, e); err != nil {
		return err
	}
	ts := times(e.mtime)
	return unix.Futimes(fd, []unix.Timeval{unix.NsecToTimeval(ts[0].Nano()), unix.NsecToTimeval(ts[1].Nano())})
}

// holeSize is what a run of zeros must have to be left out of a file.
const holeSize = 64 << 10

// writeSparse writes a file's content with holes for its zeros: archives spell out what was sparse.
func writeSparse(fd int, name string, r io.Reader, buf []byte) error {
	zeros := make([]byte, holeSize)
	var size int64
	hole := false // at the end of what is written
	for {
		n, rerr := fill(r, buf)
		for p := buf[:n]; len(p) > 0; {
			part := p[:min(len(p), holeSize)]
			p = p[len(part):]
			size += int64(len(part))
			var err error
			if hole = bytes.Equal(part, zeros); hole {
				_, err = unix.Seek(fd, int64(len(part)), io.SeekCurrent)
			} else {
				err = writeAll(fd, part)
			}
			if err != nil {
				return fmt.Errorf("unpack %s: %w", name, err)
			}
		}
		if rerr == io.EOF && hole {
			return unix.Ftruncate(fd, size)
		}
		if rerr == io.EOF {
			return nil
		}
		if rerr != nil {
			return rerr
		}
	}
}

// fill reads until buf is full or r ends, with the error of r as it is: an archive that is cut short is not an end of file.
func fill(r io.Reader, buf []byte) (n int, err error) {
	for n < len(buf) && err == nil {
		var m int
		m, err = r.Read(buf[n:])
		n += m
	}
	return n, err
}

func writeAll(fd int, p []byte) error {
	for len(p) > 0 {
		n, err := unix.Write(fd, p)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return err
		}
		p = p[n:]
	}
	return nil
}

func times(t time.Time) []unix.Timespec {
	ts := unix.NsecToTimespec(t.UnixNano())
	return []unix.Timespec{ts, ts}
}

func unixMode(m fs.FileMode) uint32 {
	mode := uint32(m.Perm())
	for bit, u := range map[fs.FileMode]uint32{fs.ModeSetuid: unix.S_ISUID, fs.ModeSetgid: unix.S_ISGID, fs.ModeSticky: unix.S_ISVTX} {
		if m&bit != 0 {
			mode |= u
		}
	}
	return mode
}

func (t *target) symlink(e entry, to string) error {
	fd, base, err := t.parent(e.name)
	if err != nil {
		return err
	}
	if err := t.create(fd, base, func() error { return unix.Symlinkat(to, fd, base) }); err != nil {
		return t.fault(e.name, err)
	}
	if err := t.chown(fd, base, e); err != nil {
		return t.fault(e.name, err)
	}
	return unix.UtimesNanoAt(fd, base, times(e.mtime), unix.AT_SYMLINK_NOFOLLOW)
}

func (t *target) link(e entry, to string) error {
	if e.name == "." || e.name == to {
		return &EntryError{Name: e.name, Reason: "is a link to itself"}
	}
	from, fromBase, err := t.parent(to)
	if err != nil {
		return err
	}
	// A separate descriptor: looking up the second parent may close the cached one.
	if from, err = unix.FcntlInt(uintptr(from), unix.F_DUPFD_CLOEXEC, 0); err != nil {
		return t.fault(e.name, err)
	}
	defer closeFD(from)
	fd, base, err := t.parent(e.name)
	if err != nil {
		return err
	}
	err = t.create(fd, base, func() error { return unix.Linkat(from, fromBase, fd, base, 0) })
	if err == unix.ENOENT || err == unix.EPERM || err == unix.EEXIST {
		return &EntryError{Name: e.name, Reason: fmt.Sprintf("is a hard link to %q, which is not there or no file", to)}
	}
	if err != nil {
		return t.fault(e.name, err)
	}
	return nil
}

func (t *target) whiteout(name string) error {
	dir, base := path.Split(name)
	fd, err := t.openDir(path.Clean(dir))
	if err == unix.ENOENT || err == unix.ENOTDIR {
		return nil // nothing there to hide
	}
	if err != nil {
		return t.fault(name, err)
	}
	defer closeFD(fd)
	t.forget()
	if err := removeAll(fd, base); err != nil {
		return t.fault(name, err)
	}
	return nil
}

// opaque hides what lower layers have in dir; what this layer brought before the mark stays.
func (t *target) opaque(dir string) error {
	fd, err := t.openDir(dir)
	if err == unix.ENOENT || err == unix.ENOTDIR {
		return nil
	}
	if err != nil {
		return t.fault(dir, err)
	}
	defer closeFD(fd)
	t.forget()
	if err := removeOthers(fd, dir, t.mine, t.bare); err != nil {
		return t.fault(dir, err)
	}
	return nil
}

// finish sets the modes and times of directories, the deepest first.
func (t *target) finish() error {
	for i := len(t.late) - 1; i >= 0; i-- {
		if err := t.finishDirectory(t.late[i]); err != nil {
			return err
		}
	}
	return nil
}

func (t *target) finishDirectory(e entry) error {
	fd, err := openat2(t.root, e.name, &unix.OpenHow{Flags: unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC, Resolve: t.resolve})
	if errors.Is(err, unix.ENOENT) || err == unix.ENOTDIR || err == unix.ELOOP {
		return nil // a later entry replaced it
	}
	if err != nil {
		return t.fault(e.name, err)
	}
	defer closeFD(fd)
	if e.name == "." && t.o.Owner != nil {
		uid, gid := t.o.Owner(e.uid, e.gid)
		if err := unix.Fchown(fd, uid, gid); err != nil {
			return t.fault(e.name, err)
		}
	}
	if err := unix.Fchmod(fd, unixMode(e.mode)); err != nil {
		return t.fault(e.name, err)
	}
	if err := t.setXattrs(fd, e); err != nil {
		return err
	}
	tv := unix.NsecToTimeval(e.mtime.UnixNano())
	return unix.Futimes(fd, []unix.Timeval{tv, tv})
}
