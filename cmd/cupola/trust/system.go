package trust

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"cupola/runtime/durable"
)

// systems are where distributions take local CAs from, and the program that makes
// their bundle.
var systems = []systemStore{
	{dir: "usr/local/share/ca-certificates", programs: []string{"update-ca-certificates"}},            // Debian, Ubuntu, Alpine
	{dir: "etc/pki/ca-trust/source/anchors", programs: []string{"update-ca-trust"}},                   // Fedora, RHEL
	{dir: "etc/ca-certificates/trust-source/anchors", programs: []string{"update-ca-trust", "trust"}}, // Arch
	{dir: "etc/pki/trust/anchors", programs: []string{"update-ca-certificates"}},                      // openSUSE
}

// programArgs are the arguments of programs.
var programArgs = map[string][]string{"trust": {"extract-compat"}, "update-ca-trust": {"extract"}}

// binDirs are where programs of a system lie.
var binDirs = []string{"usr/sbin", "usr/bin", "sbin", "bin"}

// systemStore is the store of a system.
type systemStore struct {
	root     string // "": this system's
	dir      string // below root
	programs []string
}

// systemStores returns the stores of the system below a root: those whose directory and
// program are there. Without any, it returns the first, whose error says what is missing.
func systemStores(root string) (found []store) {
	for _, s := range systems {
		s.root = root
		_, ok := s.program()
		if info, err := os.Stat(filepath.Dir(s.path(""))); ok && err == nil && info.IsDir() {
			found = append(found, s)
		}
	}
	if found == nil {
		first := systems[0]
		first.root = root
		found = append(found, first)
	}
	return found
}

// String is the directory of the store.
func (s systemStore) String() string { return "the system's store " + s.path("") }

func (s systemStore) path(name string) string { return filepath.Join("/", s.root, s.dir, name) }

// program finds the program that makes the bundle; it is a path below the root.
func (s systemStore) program() (p program, ok bool) {
	for _, name := range s.programs {
		for _, dir := range binDirs {
			path := filepath.Join("/", dir, name)
			if info, err := os.Stat(filepath.Join("/", s.root, path)); err == nil && info.Mode()&0o111 != 0 {
				return program{root: s.root, path: path, args: programArgs[name]}, true
			}
		}
	}
	return p, false
}

// errNoProgram says that a system has no program that makes the bundle.
var errNoProgram = errors.New("no update-ca-certificates, update-ca-trust or trust: install the package ca-certificates")

func (s systemStore) add(ca authorityCert, run runner) (changed bool, err error) {
	p, ok := s.program()
	if !ok {
		return false, errNoProgram
	}
	name := s.path(ca.name + ".crt")
	if is, err := os.ReadFile(name); err == nil && bytes.Equal(is, ca.pem) {
		return false, s.update(p, run) // the last run may have been interrupted before it
	}
	if err := durable.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return false, err
	}
	if err := durable.Write(name, ca.pem, 0o644); err != nil {
		return false, err
	}
	return true, s.update(p, run)
}

func (s systemStore) remove(ca authorityCert, run runner) (changed bool, err error) {
	p, ok := s.program()
	if !ok {
		return false, errNoProgram
	}
	err = os.Remove(s.path(ca.name + ".crt"))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if filepath.Base(p.path) == "update-ca-certificates" {
		p.args = []string{"--fresh"} // it removes the links of before only then
	}
	return true, s.update(p, run)
}

func (s systemStore) update(p program, run runner) error {
	if out, err := run(p); err != nil {
		return fmt.Errorf("%s: %w: %s", p.path, err, bytes.TrimSpace(out))
	}
	return nil
}
