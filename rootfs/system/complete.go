// Package system knows what system is in a tree of files: which machine, kernel and stack it is for. It makes the files that
// every stack has, and completes foreign trees with those that Diego's lifecycle relies on.
package system

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"cupola/rootfs/tree"
	"cupola/runtime/contract"
	"cupola/runtime/users"
)

// Complete adds to a foreign tree what Diego's lifecycle relies on and is missing: the account vcap, its home, the usual
// directories, CA certificates. It returns what the tree is, and refuses one for another machine. The tree's files belong to
// the host's IDs of ids.
func Complete(root *os.File, ids users.Range) (tree.Traits, error) {
	traits := traitsOf(root, read(root, "etc/os-release"))
	if err := checkArch(traits); err != nil {
		return traits, err
	}
	return traits, completion{root, ids}.run()
}

// completion adds missing files to a tree.
type completion struct {
	root *os.File
	ids  users.Range
}

func (c completion) run() (err error) {
	for _, n := range Skeleton(Shell) {
		if n.Mode.IsDir() {
			err = errors.Join(err, c.addDir(n))
		}
	}
	if err != nil {
		return err
	}
	shell := "/bin/sh"
	if f, err := tree.OpenRegular(c.root, "bin/bash"); err == nil {
		f.Close()
		shell = "/bin/bash"
	}
	return errors.Join(
		c.addAccount("etc/passwd", vcapEntry(shell), passwd(shell)),
		c.addAccount("etc/group", vcapGroup(), group()),
		c.addFile("etc/hosts", "127.0.0.1\tlocalhost\n"), c.addFile("etc/resolv.conf", ""),
		c.addCertificates(), tree.AddLink(c.root, "app", contract.AppDir, c.ids))
}

// addDir makes a directory if nothing has its name. One that is there keeps its mode, except for those that all users write to.
func (c completion) addDir(n tree.Node) error {
	dir, err := tree.OpenDir(c.root, n.Path)
	if err == nil {
		defer dir.Close()
		if n.Mode&fs.ModeSticky == 0 {
			return nil
		}
		return dir.Chmod(n.Mode &^ fs.ModeType)
	}
	if tree.Exists(c.root, n.Path) {
		return nil // a link to nothing, or a file: the tree may have it so
	}
	if dir, err = tree.OpenDirs(c.root, n.Path, &tree.Owner{UID: n.Owner, GID: n.Owner}, c.ids); err != nil {
		return fmt.Errorf("make %s: %w", n.Path, err)
	}
	defer dir.Close()
	return dir.Chmod(n.Mode &^ fs.ModeType)
}

// addAccount appends a line to a file of accounts that has no vcap; a tree without the file gets all of whole.
func (c completion) addAccount(name, line, whole string) error {
	text := read(c.root, name)
	if text == "" {
		return c.write(name, whole)
	}
	if strings.HasPrefix(text, "vcap:") || strings.Contains(text, "\nvcap:") {
		return nil
	}
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return c.write(name, text+line+"\n")
}

func (c completion) addFile(name, content string) error {
	if tree.Exists(c.root, name) {
		return nil
	}
	return c.write(name, content)
}

func (c completion) addCertificates() error {
	if tree.Exists(c.root, CABundle) {
		return nil
	}
	return c.write(CABundle, CACertificates())
}

func (c completion) write(name, content string) error {
	dir, err := tree.OpenDirs(c.root, path.Dir(name), &tree.Owner{}, c.ids)
	if err != nil {
		return err
	}
	defer dir.Close()
	return tree.ReplaceFile(dir, path.Base(name), []byte(content), 0o644, tree.Owner{}, c.ids)
}

// read reads a file of the tree, "" when it is not there; an os-release is often a link.
func read(root *os.File, name string) string {
	f, err := tree.OpenFollowing(root, name)
	if err != nil {
		return ""
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, 1<<20))
	if err != nil {
		return ""
	}
	return string(b)
}
