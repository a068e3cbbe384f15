package rootfs

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"cupola/rootfs/reference"
)

// Kind is where a stack's files come from.
type Kind string

// The kinds of stacks.
const (
	KindMinifs Kind = "minifs" // made by the store itself
	KindHost   Kind = "host"   // this machine's /usr, read-only
	KindDir    Kind = "dir"    // a tree in the store: imported or built
	KindImage  Kind = "image"  // the layers of an image in the store
)

// Stack is an operating system's files, which apps run on.
type Stack struct {
	Name        string
	Compat      string // what CF_STACK says: the name buildpacks know the stack by
	Description string
	Kind        Kind
	Origin      string    // what a KindDir was made from, for people
	Digest      string    // sha256 of what it was made from, when that is known
	Bytes       int64     // of its regular files, for a KindDir
	Created     time.Time // zero for those the store makes
	// What its files tell of it, "" where they do not: see Image.
	Kernel, Libc, Arch string `json:",omitempty"`

	id    string // names the stack's directory
	dir   string // its tree
	binds []Bind

	chains []string // of an image instead of dir
}

// Stacks lists the stacks that can be used, by name.
func (s *Store) Stacks() []Stack {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.SortedFunc(maps.Values(s.stacks), func(a, b Stack) int { return cmp.Compare(a.Name, b.Name) })
}

// Stack finds a stack by its name.
func (s *Store) Stack(name string) (Stack, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st, ok := s.stacks[name]
	return st, ok
}

// Default chooses the stack of apps that name none: the operator's if asked for and there, else host if its probe
// passed, else minifs. why is one line for the log.
func (s *Store) Default(operator string) (name, why string) {
	var missing string
	if operator != "" {
		if _, ok := s.Stack(operator); ok {
			return operator, "chosen by the operator"
		}
		missing = fmt.Sprintf("stack %q is not here; ", operator)
	}
	if _, ok := s.Stack(hostName); ok {
		return hostName, missing + "bash runs from this machine's /usr"
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return minifsName, fmt.Sprintf("%sthis machine's /usr cannot be used: %v", missing, s.probes[hostName])
}

// loadStacks finds the stacks in the store and makes minifs and host.
func (s *Store) loadStacks() error {
	entries, err := os.ReadDir(s.path("stacks"))
	if err != nil {
		return err
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".new-") {
			if err := s.trash.put(s.path("stacks", e.Name())); err != nil {
				return err
			}
		}
		if strings.HasPrefix(e.Name(), ".") {
			continue
		}
		st, err := s.readStack(e.Name())
		if err != nil {
			s.log.Warn("stack was skipped", "stack", e.Name(), "made_from", st.Origin, "err", err)
			continue
		}
		s.stacks[st.Name] = st
	}
	if err := s.makeMinifs(); err != nil {
		return fmt.Errorf("make the stack minifs: %w", err)
	}
	if err := s.makeHost(); err != nil {
		s.probes[hostName] = err
	}
	return s.dropOldTrees()
}

func (s *Store) makeMinifs() error {
	st := Stack{Name: minifsName, Compat: minifsName, Kind: KindMinifs, Description: "static binaries and simple commands; always there"}
	return s.makeTree(&st, minifsTree(s.cfg.Tools))
}

// emptyDir hides what containers must not see of the machine's /usr, where a stack is probed or packed.
func (s *Store) emptyDir() string { return s.path("stacks", ".empty") }

func (s *Store) makeHost() error {
	if !privileged() {
		return errors.New("its probe needs root")
	}
	empty := s.emptyDir()
	if err := os.Mkdir(empty, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	view := viewHost("/", empty)
	st := Stack{Name: hostName, Kind: KindHost, Description: "this machine's /usr, read-only", binds: view.binds}
	st.Compat = cmp.Or(compatOfRelease(view.release()), hostName)
	if err := s.makeTree(&st, view.nodes); err != nil {
		return err
	}
	if err := probe(st, s.cfg.IDMap); err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.stacks, hostName)
		return err
	}
	return nil
}

// makeTree registers a stack with the given files. A tree is never changed, since containers may have it mounted: other
// files make another tree.
func (s *Store) makeTree(st *Stack, nodes []node) error {
	st.id = "." + st.Name + "-" + fingerprint(nodes, s.cfg.IDMap)
	st.dir = s.path("stacks", st.id, "fs")
	if err := s.ensureTree(st, nodes); err != nil {
		return err
	}
	s.register(*st)
	return nil
}

func (s *Store) ensureTree(st *Stack, nodes []node) error {
	final := s.path("stacks", st.id)
	if m, err := readMark(final); err == nil && m.whole() {
		return nil
	}
	if err := s.trash.put(final); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp(s.path("stacks"), ".new-")
	if err != nil {
		return err
	}
	if err := errors.Join(writeTree(filepath.Join(tmp, "fs"), nodes, s.cfg.IDMap), writeMark(tmp, newMark())); err != nil {
		return errors.Join(err, s.trash.put(tmp))
	}
	return os.Rename(tmp, final)
}

func (s *Store) register(st Stack) {
	if c := s.cfg.Compat[st.Name]; c != "" {
		st.Compat = c
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stacks[st.Name] = st
}

// dropOldTrees deletes the trees of earlier versions of minifs and host that no container has mounted.
func (s *Store) dropOldTrees() error {
	entries, err := os.ReadDir(s.path("stacks"))
	if err != nil {
		return err
	}
	used, err := s.mountedDirs()
	if err != nil {
		return err
	}
	for _, st := range s.Stacks() {
		used[st.id] = true
	}
	for _, e := range entries {
		old := strings.HasPrefix(e.Name(), "."+minifsName+"-") || strings.HasPrefix(e.Name(), "."+hostName+"-")
		if old && !used[e.Name()] {
			if err := s.trash.put(s.path("stacks", e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// readStack reads what Import or Add wrote.
func (s *Store) readStack(name string) (Stack, error) {
	b, err := os.ReadFile(s.path("stacks", name, "stack.json"))
	if err != nil {
		return Stack{}, err
	}
	var st Stack
	if err := json.Unmarshal(b, &st); err != nil {
		return Stack{}, fmt.Errorf("parse stack.json: %w", err)
	}
	st.Name, st.id, st.dir = name, name, s.path("stacks", name, "fs")
	if c := s.cfg.Compat[name]; c != "" {
		st.Compat = c
	}
	if st.Kind == KindImage {
		c, err := s.cachedImage(st.Digest)
		st.dir, st.chains = "", c.Chains
		return st, err
	}
	if _, err := os.Stat(st.dir); err != nil {
		return Stack{}, err
	}
	return st, nil
}

// Remove deletes a stack that was imported or added and that no container uses.
func (s *Store) Remove(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	st, ok := s.stacks[name]
	if !ok {
		return fmt.Errorf("stack %q is not here", name)
	}
	if st.Kind != KindDir && st.Kind != KindImage {
		return fmt.Errorf("stack %q is part of cupola and cannot be removed", name)
	}
	used, err := s.mountedDirs()
	if err != nil {
		return err
	}
	if used[st.id] || s.using[st.id] > 0 {
		return fmt.Errorf("stack %q is used by running containers", name)
	}
	if err := s.trash.put(s.path("stacks", st.id)); err != nil {
		return err
	}
	delete(s.stacks, name)
	return nil
}

// checkNewStack refuses names that cannot be a new stack's.
func (s *Store) checkNewStack(name string) error {
	if !reference.IsStackName(name) {
		return fmt.Errorf("stack name %q: use letters, digits, '.', '_' and '-'", name)
	}
	if name == minifsName || name == hostName {
		return fmt.Errorf("stack name %q is taken by cupola", name)
	}
	if _, ok := s.Stack(name); ok {
		return fmt.Errorf("stack %q exists already", name)
	}
	return nil
}

// compatOfRelease tells which of CF's stacks shares its userland with the system of an os-release file; "" for none.
func compatOfRelease(release string) string {
	for line := range strings.Lines(release) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		if key != "VERSION_CODENAME" {
			continue
		}
		switch strings.Trim(value, `"'`) {
		case "bionic":
			return "cflinuxfs3"
		case "jammy":
			return "cflinuxfs4"
		case "noble":
			return "cflinuxfs5"
		}
	}
	return ""
}
