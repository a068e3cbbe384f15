package monit

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
)

// marker names the files that were installed. It is written last.
const marker = ".installed"

// install copies a job's rendered files to its directory, where scripts may change them as on a BOSH virtual machine. If the same
// files were installed there before, what became of them stays. They belong to root and a group, with the modes that BOSH's agent gives.
func install(from, to, group string) error {
	g, err := user.LookupGroup(group)
	if err != nil {
		return err
	}
	gid, err := strconv.Atoi(g.Gid)
	if err != nil {
		return err
	}
	return (&installation{from: from, to: to, own: func(path string) error { return os.Lchown(path, 0, gid) }}).run()
}

type installation struct {
	from, to string
	own      func(path string) error
	sum      hash.Hash
	copying  bool // else it only takes the sum
}

func (i *installation) run() error {
	if err := i.open(i.to); err != nil { // whom it belongs to is set for each container
		return err
	}
	i.sum = sha256.New()
	if err := i.dir("."); err != nil {
		return err
	}
	digest, at := hex.EncodeToString(i.sum.Sum(nil)), filepath.Join(i.to, marker)
	if have, err := os.ReadFile(at); err == nil && string(have) == digest {
		return nil
	}
	if err := i.clear(); err != nil {
		return err
	}
	i.copying = true
	if err := i.dir("."); err != nil {
		return err
	}
	return os.WriteFile(at, []byte(digest), 0o600)
}

// clear removes what was installed before, the marker first.
func (i *installation) clear() error {
	if err := os.Remove(filepath.Join(i.to, marker)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	entries, err := os.ReadDir(i.to)
	for _, e := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(i.to, e.Name())))
	}
	return err
}

// dir goes through a directory. Names in it lead through the link ..data to files; what begins with dots is how they change together.
func (i *installation) dir(name string) error {
	entries, err := os.ReadDir(filepath.Join(i.from, name))
	if err != nil {
		return err
	}
	if i.copying {
		if err := i.open(filepath.Join(i.to, name)); err != nil {
			return err
		}
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "..") {
			continue
		}
		if err := i.entry(filepath.Join(name, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// open makes a directory with the mode that BOSH's agent gives.
func (i *installation) open(at string) error {
	const mode = 0o750
	return errors.Join(os.MkdirAll(at, mode), os.Chmod(at, mode), i.own(at)) //nolint:gosec // the group is that of the job's processes
}

func (i *installation) entry(name string) error {
	at := filepath.Join(i.from, name)
	if to, err := os.Readlink(at); err == nil && strings.HasPrefix(to, "..data/") {
		at = filepath.Join(filepath.Dir(at), to)
	}
	info, err := os.Lstat(at)
	switch {
	case err != nil:
		return err
	case info.Mode()&fs.ModeSymlink != 0:
		return i.link(at, name)
	case info.IsDir():
		return i.dir(name)
	}
	return i.file(at, name, info.Mode().Perm()&0o111 != 0)
}

func (i *installation) link(at, name string) error {
	to, err := os.Readlink(at)
	fmt.Fprintf(i.sum, "link %q %q\n", name, to)
	if err != nil || !i.copying {
		return err
	}
	return os.Symlink(to, filepath.Join(i.to, name))
}

func (i *installation) file(at, name string, program bool) error {
	content, err := os.ReadFile(at)
	fmt.Fprintf(i.sum, "file %q %t %d\n%s", name, program, len(content), content)
	if err != nil || !i.copying {
		return err
	}
	mode := fs.FileMode(0o640)
	if program {
		mode = 0o750
	}
	at = filepath.Join(i.to, name)
	return errors.Join(os.WriteFile(at, content, mode), os.Chmod(at, mode), i.own(at))
}
