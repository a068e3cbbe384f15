// Package stack keeps stacks, the operating systems' files that apps run on: minifs and this machine's own, which it makes itself,
// and those that were imported, built, or pulled as images.
package stack

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"cupola/rootfs/image"
	"cupola/rootfs/internal/keylock"
	"cupola/rootfs/internal/store"
	"cupola/rootfs/overlay"
	"cupola/rootfs/pack"
	"cupola/rootfs/reference"
	"cupola/rootfs/system"
	"cupola/rootfs/tree"
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

	id    string   // the name of the stack's directory; "" for an image that is not a stack
	parts []string // the names of its directories for a lease
	dirs  []string // its trees, the lowest first
	binds []Bind
	empty string // the source of binds that hide others
}

// Bind is a directory or file of the host that belongs into a root. Without a source it is an empty directory, which
// hides what another bind has there.
type Bind struct {
	Source, Destination string
	ReadOnly            bool
}

// Parts are the names of the stack's directories, as roots of containers record them.
func (st Stack) Parts() []string { return st.parts }

// Dirs are the trees that the stack's root is made of, the lowest first.
func (st Stack) Dirs() []string { return st.dirs }

// Binds are what must be bound into the stack's root. They do not have the path of the directory that hides others: containers
// would see it in their mountinfo.
func (st Stack) Binds() []Bind {
	all := slices.Clone(st.binds)
	for n := range all {
		if all[n].Source == st.empty {
			all[n].Source = ""
		}
	}
	return all
}

// HasFile reports whether a file of the stack matches a pattern of path.Match, which begins below its root.
func (st Stack) HasFile(pattern string) bool {
	return slices.ContainsFunc(st.dirs, func(dir string) bool {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		return err == nil && len(found) > 0
	})
}

// Trees are the trees of a stack that is not an image, as they are packed.
func (st Stack) Trees() []pack.Subtree {
	var all []pack.Subtree
	for _, dir := range st.dirs {
		all = append(all, pack.Subtree{Dir: dir})
	}
	for _, b := range st.binds {
		all = append(all, pack.Subtree{Dir: b.Source, At: strings.TrimPrefix(path.Clean(b.Destination), "/"), Foreign: true})
	}
	return all
}

// Dir is the directory that the stacks have in a store.
const Dir = "stacks"

// Config says how to make the stacks that are always there.
type Config struct {
	// Tools are the names under /bin of the multi-call helper, which every container has. They make up minifs; "sh" among them is
	// its shell.
	Tools []string
	// Compat overrides, by the stack's name, the value of CF_STACK in its containers.
	Compat map[string]string
}

// Stacks are the stacks of a store. Their methods may be called at the same time.
type Stacks struct {
	store  *store.Store
	images *image.Cache
	cfg    Config
	locks  keylock.Locks

	mu     sync.Mutex // taken after the store's leases
	stacks map[string]Stack
	probe  error // why this machine's /usr cannot be used
}

// New finds the stacks of a store, and makes minifs and host.
func New(s *store.Store, images *image.Cache, cfg Config) (*Stacks, error) {
	all := &Stacks{store: s, images: images, cfg: cfg, stacks: map[string]Stack{}}
	return all, all.load()
}

// All lists the stacks that can be used, by name.
func (s *Stacks) All() []Stack {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.SortedFunc(maps.Values(s.stacks), func(a, b Stack) int { return cmp.Compare(a.Name, b.Name) })
}

// Get finds a stack by its name.
func (s *Stacks) Get(name string) (Stack, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st, ok := s.stacks[name]
	return st, ok
}

// Default chooses the stack of apps that name none: the operator's if it is there, else host if its probe passed, else minifs. why
// is one line for the log.
func (s *Stacks) Default(operator string) (name, why string) {
	var missing string
	if operator != "" {
		if _, ok := s.Get(operator); ok {
			return operator, "chosen by the operator"
		}
		missing = fmt.Sprintf("stack %q is not here; ", operator)
	}
	if _, ok := s.Get(Host); ok {
		return Host, missing + "bash runs from this machine's /usr"
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return Minifs, fmt.Sprintf("%sthis machine's /usr cannot be used: %v", missing, s.probe)
}

// load finds the stacks in the store and makes minifs and host.
func (s *Stacks) load() error {
	entries, err := os.ReadDir(s.store.Path(Dir))
	if err != nil {
		return err
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".new-") {
			if err := s.store.Trash.Put(s.store.Path(Dir, e.Name())); err != nil {
				return err
			}
		}
		if strings.HasPrefix(e.Name(), ".") || !s.isNewer(e.Name()) {
			continue
		}
		st, err := s.read(e.Name())
		if err != nil {
			s.store.Log.Warn("stack was skipped", "stack", e.Name(), "made_from", st.Origin, "err", err)
			continue
		}
		s.stacks[st.Name] = st
	}
	if err := s.makeMinifs(); err != nil {
		return fmt.Errorf("make the stack minifs: %w", err)
	}
	if err := s.makeHost(); err != nil {
		s.probe = err
	}
	for _, st := range s.All() {
		if err := s.dropReplaced(st.Name); err != nil {
			return err
		}
	}
	return s.dropOldTrees()
}

func (s *Stacks) makeMinifs() error {
	st := Stack{Name: Minifs, Compat: Minifs, Kind: KindMinifs, Description: "static binaries and simple commands; always there"}
	return s.makeTree(&st, minifsTree(s.cfg.Tools))
}

// emptyDir hides what containers must not see of the machine's /usr, where a stack is probed or packed.
func (s *Stacks) emptyDir() string { return s.store.Path(Dir, ".empty") }

func (s *Stacks) makeHost() error {
	if !tree.Privileged() {
		return errors.New("its probe needs root")
	}
	empty := s.emptyDir()
	if err := os.Mkdir(empty, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if silent, err := overlay.SilentSoftware(); err != nil {
		return err
	} else if len(silent) > 0 {
		return fmt.Errorf("the file system mounted at %s does not answer", strings.Join(silent, " "))
	}
	view := viewHost("/", empty)
	st := Stack{Name: Host, Kind: KindHost, Description: "this machine's /usr, read-only", binds: view.binds, empty: empty}
	st.Compat = cmp.Or(system.CompatOfRelease(view.release()), Host)
	if err := s.makeTree(&st, view.nodes); err != nil {
		return err
	}
	if err := probe(st, s.store.IDs); err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.stacks, Host)
		return err
	}
	return nil
}

// makeTree registers a stack with the given files. A tree is never changed, since containers may have it mounted: other
// files make another tree.
func (s *Stacks) makeTree(st *Stack, nodes []tree.Node) error {
	st.id = "." + st.Name + "-" + tree.Fingerprint(nodes, s.store.IDs)
	st.parts, st.dirs = []string{st.id}, []string{s.store.Path(Dir, st.id, tree.FS)}
	if err := s.ensureTree(st, nodes); err != nil {
		return err
	}
	s.register(*st)
	return nil
}

func (s *Stacks) ensureTree(st *Stack, nodes []tree.Node) error {
	final := s.store.Path(Dir, st.id)
	if m, err := tree.ReadMark(final); err == nil && m.Whole() {
		return nil
	}
	if err := s.store.Trash.Put(final); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp(s.store.Path(Dir), ".new-")
	if err != nil {
		return err
	}
	if err := errors.Join(tree.Write(filepath.Join(tmp, tree.FS), nodes, s.store.IDs), tree.WriteMark(tmp, tree.NewMark())); err != nil {
		return errors.Join(err, s.store.Trash.Put(tmp))
	}
	return os.Rename(tmp, final)
}

func (s *Stacks) register(st Stack) {
	if c := s.cfg.Compat[st.Name]; c != "" {
		st.Compat = c
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stacks[st.Name] = st
}

// dropOldTrees deletes the trees of earlier versions of minifs and host that no container has mounted.
func (s *Stacks) dropOldTrees() error {
	entries, err := os.ReadDir(s.store.Path(Dir))
	if err != nil {
		return err
	}
	current := map[string]bool{}
	for _, st := range s.All() {
		current[st.id] = true
	}
	return s.store.Collect(func(used func(string) bool) error {
		for _, e := range entries {
			old := strings.HasPrefix(e.Name(), "."+Minifs+"-") || strings.HasPrefix(e.Name(), "."+Host+"-")
			if !old || current[e.Name()] || used(e.Name()) {
				continue
			}
			if err := s.store.Trash.Put(s.store.Path(Dir, e.Name())); err != nil {
				return err
			}
		}
		return nil
	})
}

// read reads what Import or Add wrote.
func (s *Stacks) read(id string) (Stack, error) {
	name, _ := nameOf(id)
	b, err := os.ReadFile(s.store.Path(Dir, id, "stack.json"))
	if err != nil {
		return Stack{}, err
	}
	var st Stack
	if err := json.Unmarshal(b, &st); err != nil {
		return Stack{}, fmt.Errorf("parse stack.json: %w", err)
	}
	st.Name, st.id, st.parts = name, id, []string{id}
	if c := s.cfg.Compat[name]; c != "" {
		st.Compat = c
	}
	if st.Kind == KindImage {
		return s.onImage(st)
	}
	st.dirs = []string{s.store.Path(Dir, id, tree.FS)}
	if _, err := os.Stat(st.dirs[0]); err != nil {
		return Stack{}, err
	}
	return st, nil
}

// Remove deletes a stack that was imported or added and that no container uses.
func (s *Stacks) Remove(name string) error {
	return s.store.Collect(func(used func(string) bool) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		st, ok := s.stacks[name]
		switch {
		case !ok:
			return fmt.Errorf("stack %q is not here", name)
		case st.Kind != KindDir && st.Kind != KindImage:
			return fmt.Errorf("stack %q is part of cupola and cannot be removed", name)
		}
		ids, err := s.generations(name)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(ids, used) {
			return fmt.Errorf("stack %q is used by running containers", name)
		}
		for _, id := range ids {
			if err := s.store.Trash.Put(s.store.Path(Dir, id)); err != nil {
				return err
			}
		}
		delete(s.stacks, name)
		return nil
	})
}

// Of are the names of the stacks that are made of an image.
func (s *Stacks) Of(digest string) (names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, st := range s.stacks {
		if st.Kind == KindImage && st.Digest == digest {
			names = append(names, st.Name)
		}
	}
	return names
}

// checkName refuses names that a new stack cannot have.
func (s *Stacks) checkName(name string, replace bool) error {
	if !reference.IsStackName(name) {
		return fmt.Errorf("stack name %q: use letters, digits, '.', '_' and '-'", name)
	}
	if name == Minifs || name == Host {
		return fmt.Errorf("stack name %q is taken by cupola", name)
	}
	if _, ok := s.Get(name); ok && !replace {
		return fmt.Errorf("stack %q exists already", name)
	}
	return nil
}
