// Package files keeps the small files of containers in memory: one tmpfs for
// each container, in which lie directories that the container may see, and
// files that are the daemon's alone. They are there as long as the container,
// whatever becomes of the daemon, and never on a disk.
//
// What a program reads together changes together, as a volume of Kubernetes does:
// its files lie in their own directory, to which the link ..data leads, and
// through it links with the files' names. The rename of ..data is the change.
// Each directory at the top of a tree is such a volume, so that the top of a
// tree of bindings has nothing but bindings: readers take all there for one.
package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"cupola/runtime/lrp"
)

// Config says where a Store keeps its mounts.
type Config struct {
	// Dir is made 0711: containers reach their directories through it.
	Dir string
}

// Store keeps files. Its methods may be called at the same time.
type Store struct {
	cfg   Config
	chown func(memory *os.Root, name string, uid, gid int) error

	mu    sync.Mutex // while containers come and go
	using map[string]*use
}

// use is the right to change what is one container's.
type use struct {
	mu   sync.Mutex
	want int // how many have it, or wait for it; guarded by the Store's mu
}

// lock keeps others from a container.
func (s *Store) lock(id string) (unlock func()) {
	s.mu.Lock()
	u := s.using[id]
	if u == nil {
		u = &use{}
		s.using[id] = u
	}
	u.want++
	s.mu.Unlock()
	u.mu.Lock()
	return func() {
		u.mu.Unlock()
		s.mu.Lock()
		defer s.mu.Unlock()
		if u.want--; u.want == 0 {
			delete(s.using, id)
		}
	}
}

// New makes a Store. What an earlier one kept is there.
func New(cfg Config) (*Store, error) {
	if err := errors.Join(os.MkdirAll(cfg.Dir, 0o711), os.Chmod(cfg.Dir, 0o711)); err != nil {
		return nil, fmt.Errorf("make directory of files: %w", err)
	}
	return &Store{cfg: cfg, using: map[string]*use{}, chown: (*os.Root).Lchown}, nil
}

// Create mounts a container's tmpfs, owned by base, the host's ID of the
// container's root. It is noexec unless it is for programs.
func (s *Store) Create(id string, base uint32, programs bool) error {
	if !filepath.IsLocal(id) || filepath.Base(id) != id {
		return fmt.Errorf("make memory of container %q: bad ID", id)
	}
	defer s.lock(id)()
	if err := s.claim(id); err != nil {
		return fmt.Errorf("make memory of container %s: %w", id, err)
	}
	err := mount(s.dir(id), base, programs)
	if err == nil {
		err = os.Mkdir(filepath.Join(s.dir(id), own), 0o700)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("make memory of container %s: %w", id, err), s.remove(id))
	}
	return nil
}

// claim makes the container's directory, which keeps what containers share.
func (s *Store) claim(id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := hold(s.cfg.Dir); err != nil {
		return err
	}
	return os.Mkdir(s.dir(id), 0o700)
}

// Remove takes all of a container away. One that is not there is no error.
func (s *Store) Remove(id string) error {
	if !filepath.IsLocal(id) || filepath.Base(id) != id {
		return nil
	}
	defer s.lock(id)()
	return s.remove(id)
}

func (s *Store) remove(id string) error {
	if err := unmount(s.dir(id)); err != nil {
		return fmt.Errorf("unmount memory of container %s: %w", id, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := os.Remove(s.dir(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return s.release()
}

// Teardown removes what containers share, if there are no containers.
func (s *Store) Teardown() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.release()
}

// release undoes hold after the last container.
func (s *Store) release() error {
	entries, err := os.ReadDir(s.cfg.Dir)
	if err != nil || len(entries) > 0 {
		return err
	}
	return unmount(s.cfg.Dir)
}

// List names the containers that have memory.
func (s *Store) List() ([]string, error) {
	entries, err := os.ReadDir(s.cfg.Dir)
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, e := range entries {
		ids = append(ids, e.Name())
	}
	return ids, nil
}

// Used returns how many bytes of memory the files of a container use.
func (s *Store) Used(id string) (int64, error) { return used(s.dir(id)) }

func (s *Store) dir(id string) string { return filepath.Join(s.cfg.Dir, id) }

// own is the directory of what is the daemon's alone.
const own = "own"

// Keep writes a file that the container does not see.
func (s *Store) Keep(id, name string, content []byte) error {
	path := filepath.Join(s.dir(id), own, name)
	if err := os.WriteFile(path+".new", content, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// Kept reads what Keep wrote.
func (s *Store) Kept(id, name string) ([]byte, error) {
	return os.ReadFile(filepath.Join(s.dir(id), own, name))
}

// Path is where the directory of a tree lies, to be mounted into the container.
func (s *Store) Path(id, tree string) string { return filepath.Join(s.dir(id), tree) }

// Read reads a file of a tree.
func (s *Store) Read(id, tree, name string) ([]byte, error) {
	return os.ReadFile(filepath.Join(s.dir(id), tree, name))
}

// Replace gives a tree of a container other files. Who reads a directory at the
// top of the tree sees its old files or the new, and so does who reads the files
// at the top; what is the same stays untouched. They can be read, and programs
// executed, by root and by the group gid of the container. The first call makes
// the tree.
func (s *Store) Replace(id, tree string, gid uint32, files []lrp.File) error {
	if err := lrp.CheckFiles(files); err != nil {
		return err
	}
	defer s.lock(id)()
	memory, err := os.OpenRoot(s.dir(id))
	if err != nil {
		return err
	}
	defer memory.Close()
	w, err := s.writer(memory, gid)
	if err != nil {
		return err
	}
	if err := w.makeTree(memory, tree); err != nil {
		return fmt.Errorf("make directory of files: %w", err)
	}
	return w.fill(memory, tree, files)
}

// writer makes the files of one container.
type writer struct {
	base  int // the user and group that is root in the container
	gid   int // of the files, as the container knows it
	chown func(root *os.Root, name string, uid, gid int) error
}

// writer finds whose a container's memory is: that of its group.
func (s *Store) writer(memory *os.Root, gid uint32) (writer, error) {
	info, err := memory.Stat(".")
	if err != nil {
		return writer{}, err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return writer{}, errors.ErrUnsupported
	}
	return writer{base: int(st.Gid), gid: int(gid), chown: s.chown}, nil
}

func (w writer) own(root *os.Root, name string, gid int) error {
	return w.chown(root, name, w.base, w.base+gid)
}

func (w writer) makeTree(memory *os.Root, tree string) error {
	if err := memory.Mkdir(tree, 0o755); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return nil
		}
		return err
	}
	return errors.Join(memory.Chmod(tree, 0o755), w.own(memory, tree, 0))
}
