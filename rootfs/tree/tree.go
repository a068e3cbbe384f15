// Package tree makes and changes directory trees that are or become the files of containers: it writes them, opens files in
// them as a container would, marks those that are whole, and deletes them in the background.
package tree

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"

	"cupola/runtime/users"
)

// Owner is the user and the group that files in a container belong to, by the container's IDs.
type Owner struct{ UID, GID uint32 }

// Privileged reports whether this process may give files away.
func Privileged() bool { return os.Geteuid() == 0 }

// OwnedBy gives all files of an archive to one owner, or is nil when this process may not give files away.
func OwnedBy(ids users.Range, o Owner) func(uid, gid int) (int, int) {
	if !Privileged() {
		return nil
	}
	u, g := int(ids.Host(o.UID)), int(ids.Host(o.GID))
	return func(int, int) (int, int) { return u, g }
}

// Shifted maps the owners in an image to the host's, or is nil when this process may not give files away.
func Shifted(ids users.Range) func(uid, gid int) (int, int) {
	if !Privileged() {
		return nil
	}
	return func(uid, gid int) (int, int) { return int(ids.Host(uint32(uid))), int(ids.Host(uint32(gid))) }
}

// OpenDirs opens the directory name below root. With an owner, it makes missing directories and gives them to the owner.
func OpenDirs(root *os.File, name string, o *Owner, ids users.Range) (*os.File, error) {
	name = strings.Trim(path.Clean("/"+name), "/")
	if name == "" {
		name = "."
	}
	dir, err := OpenDir(root, name)
	if !errors.Is(err, fs.ErrNotExist) || o == nil || name == "." {
		return dir, err
	}
	up, err := OpenDirs(root, path.Dir(name), o, ids)
	if err != nil {
		return nil, err
	}
	defer up.Close()
	if err := makeDir(up, path.Base(name), *o, ids); err != nil {
		return nil, err
	}
	return OpenDir(root, name)
}
