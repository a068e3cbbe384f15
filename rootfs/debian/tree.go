package debian

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	maxLinks    = 40 // as the kernel's limit for one path
	maxNodes    = 2_000_000
	maxTree     = 32 << 30 // bytes of all files
	maxReadBack = 64 << 20
	noPackage   = "" // owner of what the build itself makes
)

// A node is what lies at one path of the tree.
type node struct {
	meta
	kind   fs.FileMode // fs.ModeDir, fs.ModeSymlink or 0 for a regular file
	target string      // of a symbolic link
}

// meta is what every kind of file has.
type meta struct {
	mode     fs.FileMode // permissions, with setuid, setgid and sticky
	uid, gid int         // as in the archive, before Options.IDShift
	mtime    time.Time
	owner    string // package
}

// A tree is a root filesystem in the making. It knows all that it holds, so paths
// are resolved in memory, inside of the tree, as the kernel would after chroot;
// what reaches the disk has no symbolic link left in its directory part, and
// os.Root sees to it.
type tree struct {
	dir   string
	root  *os.Root
	nodes map[string]*node // by path without leading slash; "" is the root
	chown bool
	shift int

	written int64 // bytes of regular files

	// Archives come in directory order: the last parent is mostly the next one's.
	parent     *os.Root
	parentPath string
	buffer     []byte
}

// newTree starts a tree in dir, which must be empty. Owners are set only when the
// process may.
func newTree(dir string, chown bool, shift uint32) (*tree, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	t := &tree{dir: dir, root: root, chown: chown, shift: int(shift), buffer: make([]byte, 256<<10)}
	t.nodes = map[string]*node{"": {kind: fs.ModeDir, meta: meta{mode: 0o755}}}
	return t, nil
}

func (t *tree) close() {
	if t.parent != nil {
		t.parent.Close()
	}
	t.root.Close()
}

// resolve follows the symbolic links in the directory part of name and returns
// the path where name really lies; the last part is not followed.
func (t *tree) resolve(name string) (string, error) { return t.walk(name, false) }

// walk resolves name, with the last part as well if last is set.
func (t *tree) walk(name string, last bool) (string, error) {
	at, links := "", 0
	todo := strings.Split(name, "/")
	for len(todo) > 0 {
		part := todo[0]
		todo = todo[1:]
		if part == "" || part == "." {
			continue
		}
		if part == ".." {
			at = parentOf(at)
			continue
		}
		next := path.Join(at, part)
		n := t.nodes[next]
		if n == nil || n.kind != fs.ModeSymlink || len(todo) == 0 && !last {
			at = next
			continue
		}
		if links++; links > maxLinks {
			return "", fmt.Errorf("too many symbolic links in %s", name)
		}
		if strings.HasPrefix(n.target, "/") {
			at = ""
		}
		todo = slices.Concat(strings.Split(n.target, "/"), todo)
	}
	return at, nil
}

func parentOf(p string) string {
	if i := strings.LastIndexByte(p, '/'); i >= 0 {
		return p[:i]
	}
	return ""
}

// lookup returns the node at name, nil if there is none; the last part is not followed.
func (t *tree) lookup(name string) *node {
	at, err := t.resolve(name)
	if err != nil {
		return nil
	}
	return t.nodes[at]
}

// at prepares a write to name: it resolves it, makes missing parents, and returns
// the parent directory and the base name.
func (t *tree) at(name string) (full string, dir *os.Root, base string, err error) {
	if full, err = t.resolve(name); err != nil {
		return "", nil, "", err
	}
	if full == "" {
		return "", nil, "", fmt.Errorf("%q is the root", name)
	}
	if len(t.nodes) > maxNodes {
		return "", nil, "", fmt.Errorf("more than %d files", maxNodes)
	}
	up := parentOf(full)
	if err := t.makeParents(up); err != nil {
		return "", nil, "", err
	}
	if t.parent == nil || t.parentPath != up {
		r, err := t.root.OpenRoot(osPath(up))
		if err != nil {
			return "", nil, "", err
		}
		if t.parent != nil {
			t.parent.Close()
		}
		t.parent, t.parentPath = r, up
	}
	return full, t.parent, path.Base(full), nil
}

// osPath is how os.Root calls the directory p.
func osPath(p string) string {
	if p == "" {
		return "."
	}
	return p
}

// makeParents makes the directories that no archive has named (yet).
func (t *tree) makeParents(dir string) error {
	if n := t.nodes[dir]; n != nil {
		if n.kind != fs.ModeDir {
			return fmt.Errorf("%s is not a directory", dir)
		}
		return nil
	}
	return t.mkdir(dir, t.own(0o755))
}

// mkdir makes a directory. One that is there, also by way of a link, stays as it
// is: the first package decides, as with dpkg.
func (t *tree) mkdir(name string, m meta) error {
	followed, err := t.walk(name, true)
	if err != nil {
		return err
	}
	if n := t.nodes[followed]; n != nil && n.kind == fs.ModeDir {
		return nil
	}
	full, dir, base, err := t.at(name)
	if err != nil {
		return err
	}
	if t.nodes[full] != nil {
		return fmt.Errorf("%s is not a directory", name)
	}
	// Modes come last, in finish: the tree must stay writable till then.
	if err := dir.Mkdir(base, 0o700); err != nil {
		return err
	}
	t.nodes[full] = &node{kind: fs.ModeDir, meta: m}
	return nil
}

// write makes a regular file of what r yields, in place of any file or link that
// is there, and returns its length.
func (t *tree) write(name string, m meta, r io.Reader) (int64, error) {
	full, dir, base, err := t.replace(name)
	if err != nil {
		return 0, err
	}
	f, err := dir.OpenFile(base, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return 0, err
	}
	t.nodes[full] = &node{meta: m}
	n, err := io.CopyBuffer(struct{ io.Writer }{f}, io.LimitReader(r, maxTree-t.written), t.buffer)
	if t.written += n; err == nil && t.written >= maxTree {
		err = fmt.Errorf("tree has more than %d bytes", int64(maxTree))
	}
	if err == nil && t.chown {
		err = f.Chown(m.uid+t.shift, m.gid+t.shift)
	}
	if err == nil { // after chown, which clears setuid
		err = f.Chmod(m.mode)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return n, err
	}
	return n, t.setTime(full, m.mtime)
}

// symlink makes a symbolic link, in place of any file or link that is there. A
// directory stays, as with dpkg. Targets may not climb above the root.
func (t *tree) symlink(name, target string, m meta) error {
	if n := t.lookup(name); n != nil && n.kind == fs.ModeDir {
		return nil
	}
	full, err := t.resolve(name)
	if err != nil {
		return err
	}
	if target == "" || strings.ContainsRune(target, 0) || climbs(parentOf(full), target) {
		return fmt.Errorf("link %s to %q leads out of the tree", name, target)
	}
	full, dir, base, err := t.replace(name)
	if err != nil {
		return err
	}
	if err := dir.Symlink(target, base); err != nil {
		return err
	}
	t.nodes[full] = &node{kind: fs.ModeSymlink, target: target, meta: m}
	if t.chown {
		if err := dir.Lchown(base, m.uid+t.shift, m.gid+t.shift); err != nil {
			return err
		}
	}
	return t.setTime(full, m.mtime)
}

// climbs reports whether a relative target, read in dir, goes above the root.
func climbs(dir, target string) bool {
	if strings.HasPrefix(target, "/") {
		return false
	}
	depth := 0
	if dir != "" {
		depth = strings.Count(dir, "/") + 1
	}
	for part := range strings.SplitSeq(target, "/") {
		switch part {
		case "", ".":
		case "..":
			if depth--; depth < 0 {
				return true
			}
		default:
			depth++
		}
	}
	return false
}

// link makes a hard link to a regular file of the same package.
func (t *tree) link(name, target string, m meta) error {
	old, err := t.resolve(target)
	if err != nil {
		return err
	}
	n := t.nodes[old]
	if n == nil || n.kind != 0 || n.owner != m.owner {
		return fmt.Errorf("hard link %s to %s, which is not a file of the package", name, target)
	}
	if at, err := t.resolve(name); err != nil || at == old {
		return err
	}
	full, _, _, err := t.replace(name)
	if err != nil {
		return err
	}
	if err := t.root.Link(old, full); err != nil {
		return err
	}
	t.nodes[full] = n
	return nil
}

// replace clears the way for a new file at name.
func (t *tree) replace(name string) (full string, dir *os.Root, base string, err error) {
	if full, dir, base, err = t.at(name); err != nil {
		return
	}
	n := t.nodes[full]
	if n == nil {
		return
	}
	if n.kind == fs.ModeDir {
		return "", nil, "", fmt.Errorf("%s is a directory", name)
	}
	delete(t.nodes, full)
	return full, dir, base, dir.Remove(base)
}

// read returns the contents of a file, following links inside of the tree.
func (t *tree) read(name string) ([]byte, error) {
	full, err := t.walk(name, true)
	if err != nil {
		return nil, err
	}
	if n := t.nodes[full]; n == nil || n.kind != 0 {
		return nil, fmt.Errorf("no file %s in the tree", name)
	}
	f, err := t.root.Open(full)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readAllLimited(f, maxReadBack)
}

// put writes a file of the build's own.
func (t *tree) put(name string, mode fs.FileMode, content []byte) error {
	_, err := t.write(name, t.own(mode), bytes.NewReader(content))
	return err
}

// glob lists the paths below dir that match pattern (path.Match) in their last
// part, sorted. dir is not followed if it is a link.
func (t *tree) glob(dir, pattern string) []string {
	var found []string
	for name := range t.nodes {
		if parentOf(name) == dir && name != "" {
			if ok, _ := path.Match(pattern, path.Base(name)); ok {
				found = append(found, name)
			}
		}
	}
	slices.Sort(found)
	return found
}

// finish sets the modes, owners and times of the directories, deepest first: to
// write in a directory changes its time.
func (t *tree) finish() error {
	names := slices.Sorted(maps.Keys(t.nodes))
	for _, name := range slices.Backward(names) {
		n := t.nodes[name]
		if n.kind != fs.ModeDir {
			continue
		}
		if t.chown {
			if err := t.root.Chown(osPath(name), n.uid+t.shift, n.gid+t.shift); err != nil {
				return err
			}
		}
		if err := t.root.Chmod(osPath(name), n.mode); err != nil {
			return err
		}
		if err := t.setTime(name, n.mtime); err != nil {
			return err
		}
	}
	return nil
}

func (t *tree) setTime(full string, at time.Time) error {
	return setTime(filepath.Join(t.dir, full), at)
}
