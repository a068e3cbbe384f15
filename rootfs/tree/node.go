package tree

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"cupola/runtime/users"
)

// Node is one file of a tree that consists of nodes.
type Node struct {
	Path    string // relative, slash-separated
	Mode    fs.FileMode
	Owner   uint32 // both user and group in the container
	Content string // of a file; the target of a link
}

// Dir is a directory that root owns.
func Dir(path string, mode fs.FileMode) Node { return Node{Path: path, Mode: fs.ModeDir | mode} }

// File is a file that root owns and all may read.
func File(path, content string) Node { return Node{Path: path, Mode: 0o644, Content: content} }

// Link is a symbolic link.
func Link(path, to string) Node { return Node{Path: path, Mode: fs.ModeSymlink, Content: to} }

// Fingerprint names a tree by all that is in it.
func Fingerprint(nodes []Node, ids users.Range) string {
	h := sha256.New()
	fmt.Fprintf(h, "%d %d\n", ids.Base, ids.Size)
	for _, n := range sorted(nodes) {
		fmt.Fprintf(h, "%q %o %d %q\n", n.Path, n.Mode, n.Owner, n.Content)
	}
	return hex.EncodeToString(h.Sum(nil))[:16]
}

func sorted(nodes []Node) []Node {
	return slices.SortedFunc(slices.Values(nodes), func(a, b Node) int { return cmp.Compare(a.Path, b.Path) })
}

// Write makes the tree of nodes in the new directory dir. Its files belong to the host's IDs of ids.
func Write(dir string, nodes []Node, ids users.Range) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	if err := SetOwner(dir, Node{Mode: fs.ModeDir | 0o755}, ids); err != nil {
		return err
	}
	for _, n := range sorted(nodes) { // parents sort before what is in them
		if err := writeNode(dir, n, ids); err != nil {
			return err
		}
	}
	return nil
}

func writeNode(dir string, n Node, ids users.Range) error {
	name := filepath.Join(dir, filepath.FromSlash(n.Path))
	var err error
	switch {
	case n.Mode.IsDir():
		err = os.Mkdir(name, 0o700)
	case n.Mode&fs.ModeSymlink != 0:
		err = os.Symlink(n.Content, name)
	default:
		err = os.WriteFile(name, []byte(n.Content), 0o600)
	}
	if err != nil {
		return err
	}
	return SetOwner(name, n, ids)
}

// SetOwner gives a file the owner, the mode and the time of its node.
func SetOwner(name string, n Node, ids users.Range) error {
	if Privileged() {
		id := int(ids.Host(n.Owner))
		if err := os.Lchown(name, id, id); err != nil {
			return err
		}
	}
	if n.Mode&fs.ModeSymlink != 0 {
		return nil
	}
	if err := os.Chmod(name, n.Mode&^fs.ModeType); err != nil {
		return err
	}
	return os.Chtimes(name, time.Time{}, time.Unix(0, 0))
}
