package rootfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"cupola/runtime/contract"
)

// adopt adds to a foreign tree what Diego's lifecycle relies on and is missing: the account vcap, its home, the usual
// directories, CA certificates. It returns what the tree is, and refuses one for another machine.
func (s *Store) adopt(tree string) (traits, error) {
	root, err := os.Open(tree)
	if err != nil {
		return traits{}, err
	}
	defer root.Close()
	return s.adoptRoot(root)
}

func (s *Store) adoptRoot(root *os.File) (traits, error) {
	is := traitsOf(root, s.readOwn(root, "etc/os-release"))
	if err := is.runs(); err != nil {
		return is, err
	}
	return is, s.completeRoot(root)
}

func (s *Store) completeRoot(root *os.File) (err error) {
	for _, n := range skeleton(minifsShell) {
		if n.mode.IsDir() {
			err = errors.Join(err, s.adoptDir(root, n))
		}
	}
	if err != nil {
		return err
	}
	shell := "/bin/sh"
	if f, err := openRegular(root, "bin/bash"); err == nil {
		f.Close()
		shell = "/bin/bash"
	}
	return errors.Join(
		s.adoptAccount(root, "etc/passwd", vcapEntry(shell), passwd(shell)),
		s.adoptAccount(root, "etc/group", vcapGroup(), group()),
		s.adoptFile(root, "etc/hosts", "127.0.0.1\tlocalhost\n"), s.adoptFile(root, "etc/resolv.conf", ""),
		s.adoptCertificates(root), s.cfg.IDMap.adoptLink(root, "app", contract.AppDir))
}

// adoptDir makes a directory if nothing bears its name. One that is there keeps its mode, but for those all users write to.
func (s *Store) adoptDir(root *os.File, n node) error {
	dir, err := openDir(root, n.path)
	if err == nil {
		defer dir.Close()
		if n.mode&fs.ModeSticky == 0 {
			return nil
		}
		return dir.Chmod(n.mode &^ fs.ModeType)
	}
	if existsIn(root, n.path) {
		return nil // a link to nothing, or a file: the tree's own business
	}
	if dir, err = s.cfg.IDMap.openDirs(root, n.path, &Owner{n.owner, n.owner}); err != nil {
		return fmt.Errorf("make %s: %w", n.path, err)
	}
	defer dir.Close()
	return dir.Chmod(n.mode &^ fs.ModeType)
}

// adoptAccount appends a line to a file of accounts that knows no vcap; a tree without the file gets all of whole.
func (s *Store) adoptAccount(root *os.File, name, line, whole string) error {
	text := s.readOwn(root, name)
	if text == "" {
		return s.putOwn(root, name, whole)
	}
	if strings.HasPrefix(text, "vcap:") || strings.Contains(text, "\nvcap:") {
		return nil
	}
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return s.putOwn(root, name, text+line+"\n")
}

func (s *Store) adoptFile(root *os.File, name, content string) error {
	if existsIn(root, name) {
		return nil
	}
	return s.putOwn(root, name, content)
}

func (s *Store) adoptCertificates(root *os.File) error {
	if existsIn(root, caBundle) {
		return nil
	}
	return s.putOwn(root, caBundle, caCertificates())
}

// readOwn reads a file of the tree, "" when it is not there; an os-release is often a link.
func (s *Store) readOwn(root *os.File, name string) string {
	f, err := openFollowing(root, name)
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

func (s *Store) putOwn(root *os.File, name, content string) error {
	dir, err := s.cfg.IDMap.openDirs(root, path.Dir(name), &Owner{})
	if err != nil {
		return err
	}
	defer dir.Close()
	return s.cfg.IDMap.replaceFile(dir, path.Base(name), []byte(content), 0o644, Owner{})
}
