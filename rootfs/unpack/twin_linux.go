package unpack

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Twins are files of trees that are never written again, of which an archive may have copies. A copy that is equal, with its
// mode, time and owner, is unpacked as a further name of the file, which takes no room on the disk.
type Twins struct {
	files map[traits][]twin
	used  map[inode]bool // a file has one copy at most, as two of them would be one file
}

// traits make a file worth comparing.
type traits struct {
	base  string // the last part of its path
	size  int64
	mode  fs.FileMode
	mtime int64 // ns
}

type twin struct {
	path     string
	name     string // in its tree, from "/"
	uid, gid int
	inode    inode
}

type inode struct{ dev, ino uint64 }

// FindTwins finds the files of trees that an archive may have copies of.
func FindTwins(ctx context.Context, trees ...string) (*Twins, error) {
	t := &Twins{files: map[traits][]twin{}, used: map[inode]bool{}}
	for _, tree := range trees {
		if err := filepath.WalkDir(tree, func(file string, e fs.DirEntry, err error) error {
			if err != nil || ctx.Err() != nil || !e.Type().IsRegular() {
				return errors.Join(err, ctx.Err())
			}
			info, err := e.Info()
			if err == nil && info.Size() > 0 {
				t.add(file, strings.TrimPrefix(file, tree), info)
			}
			return err
		}); err != nil {
			return nil, err
		}
	}
	return t, nil
}

func (t *Twins) add(file, name string, info fs.FileInfo) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return
	}
	key := traits{info.Name(), info.Size(), info.Mode(), info.ModTime().UnixNano()}
	t.files[key] = append(t.files[key], twin{file, name, int(st.Uid), int(st.Gid), inode{st.Dev, st.Ino}})
}

// twin finds the file that an entry may be a copy of, preferably one of its path: an app's files lie deeper in its droplet.
func (t *target) twin(e entry) (found twin, ok bool) {
	if t.o.Twins == nil {
		return found, false
	}
	for _, f := range t.o.Twins.files[traits{path.Base(e.name), e.size, e.mode, e.mtime.UnixNano()}] {
		switch {
		case t.o.Twins.used[f.inode] || !t.owns(e, f):
		case strings.HasSuffix("/"+e.name, f.name):
			return f, true
		case !ok:
			found, ok = f, true
		}
	}
	return found, ok
}

// owns reports whether a file has the owner that the entry's would have.
func (t *target) owns(e entry, f twin) bool {
	if t.o.Owner == nil {
		return true // all files are the calling user's
	}
	uid, gid := t.o.Owner(e.uid, e.gid)
	return uid == f.uid && gid == f.gid
}

// share makes an entry a further name of its twin f, if that has the content that r gives. Otherwise rest gives the content.
func (t *target) share(dirfd int, base string, e entry, of twin, f *os.File, r io.Reader) (rest io.Reader, err error) {
	if t.parts == nil {
		t.parts = make([]byte, 2*comparedPart)
	}
	if rest, err = compare(r, f, e.size, t.parts); rest != nil || err != nil {
		return rest, err
	}
	if err := t.create(dirfd, base, func() error { return unix.Linkat(unix.AT_FDCWD, of.path, dirfd, base, 0) }); err != nil {
		return io.NewSectionReader(f, 0, e.size), nil // it has as many names as a file may have, or lies elsewhere
	}
	t.o.Twins.used[of.inode] = true
	return nil, nil
}

// comparedPart is how much of two files is compared at once; bytes.
const comparedPart = 64 << 10

// compare reads r. If a file of that size has the same content, rest is nil, otherwise it gives what r gave. Until it is read,
// parts must stay.
func compare(r io.Reader, f *os.File, size int64, parts []byte) (rest io.Reader, err error) {
	ours, theirs := parts[:comparedPart], parts[comparedPart:]
	for same := int64(0); ; {
		n, err := fill(r, ours)
		if err != nil && err != io.EOF {
			return nil, err
		}
		m, _ := f.ReadAt(theirs[:n], same) // what cannot be read is not the same
		if !bytes.Equal(ours[:n], theirs[:m]) {
			return io.MultiReader(io.NewSectionReader(f, 0, same), bytes.NewReader(ours[:n]), r), nil
		}
		same += int64(n)
		switch {
		case err == nil:
		case same == size:
			return nil, nil
		default:
			return io.NewSectionReader(f, 0, same), nil
		}
	}
}
