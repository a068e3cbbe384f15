package rootfs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"cupola/rootfs/disk"
)

// Request asks for the root of one container.
type Request struct {
	ID string // names the container; letters, digits, '-', '_' and '.'
	// Stack is a stack's name, or a RootFS as ParseReference reads it. An image must be in the store, or else the error is
	// ErrNotPulled, and is named by its digest.
	Stack     string
	Layers    []Layer // later ones lie above earlier ones
	DiskBytes int64   // the layers' files and what the container writes; 0 is unlimited
	Inodes    int64   // 0, or more than disk.MaxInodes, is disk.MaxInodes
	// Users are those of the host that the container's are, when Store.Shifts says that they can be its own; the zero
	// value is Config.IDMap, which all files on disk belong to.
	Users IDMap
	// ShowLayers fills in Root.Layers.
	ShowLayers bool
}

// Bind is a directory or file of the host that belongs into a root. Without a source it is an empty directory, which
// hides what another bind has there.
type Bind struct {
	Source, Destination string
	ReadOnly            bool
}

// Root is a mounted root.
type Root struct {
	Path string // on the host
	// Binds are what the container's engine must bind into it, in this order, recursively (there may be mounts below a
	// source), nosuid and nodev: the host stack's /usr and its like.
	Binds []Bind
	// Layers are where the layers lie unpacked on the host, each at its Dest, in the request's order, as the container's
	// users own them.
	Layers []string
}

// ErrMounted is returned by Mount for an id that has a root already.
var ErrMounted = errors.New("root is mounted already")

// record lies in a container's directory, written before anything is mounted.
type record struct {
	Stack      string
	Dirs       []string // ids of the stack and keys of the layers that the root is made of
	LayerBytes int64
	Users      IDMap // zero: those on disk
}

const recordFile = "root.json"

// Mount makes the root of a container. When it returns an error, nothing of it stays.
func (s *Store) Mount(ctx context.Context, r Request) (Root, error) {
	if err := checkID(r.ID); err != nil {
		return Root{}, err
	}
	defer s.locks.lock(r.ID)()
	if err := s.bringLayout(ctx, r.Stack); err != nil {
		return Root{}, err
	}
	st, release, err := s.hold(r)
	if err != nil {
		return Root{}, err
	}
	defer release()
	lowers, rec, err := s.lowers(ctx, st, r.Layers)
	if err != nil {
		return Root{}, err
	}
	if err := s.claim(r.ID); err != nil {
		return Root{}, fmt.Errorf("mount %s: %w", r.ID, err)
	}
	rec.Users = r.Users
	if err := s.assemble(r, rec, lowers); err != nil {
		return Root{}, errors.Join(fmt.Errorf("mount %s: %w", r.ID, err), s.dismantle(r.ID))
	}
	return Root{Path: s.rootPath(r.ID), Binds: s.binds(st), Layers: s.layerPaths(r)}, nil
}

// binds are a stack's, without the path of the directory that hides others: containers would see it in their mountinfo.
func (s *Store) binds(st Stack) []Bind {
	all := slices.Clone(st.binds)
	for n := range all {
		if all[n].Source == s.emptyDir() {
			all[n].Source = ""
		}
	}
	return all
}

func (s *Store) layerPaths(r Request) []string {
	if !r.ShowLayers {
		return nil
	}
	base := s.cfg.Dir
	if s.shifted(r.Users) {
		base = s.lowerPath(r.ID)
	}
	var paths []string
	for _, l := range r.Layers {
		paths = append(paths, filepath.Join(base, "layers", l.key(s.cfg.IDMap), "fs", l.Dest))
	}
	return paths
}

func (s *Store) rootPath(id string) string { return s.path("run", id, "root") }

// hold keeps the stack and layers of r from being removed until release is called: by then the record does.
func (s *Store) hold(r Request) (st Stack, release func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if st, err = s.findLocked(r.Stack); err != nil {
		return st, nil, err
	}
	held := st.parts()
	for _, l := range r.Layers {
		if err := l.check(); err != nil {
			return st, nil, err
		}
		held = append(held, l.key(s.cfg.IDMap))
	}
	return st, s.holdLocked(held), nil
}

// lowers unpacks what is missing and returns the overlay's lower directories below Config.Dir, the topmost first.
func (s *Store) lowers(ctx context.Context, st Stack, layers []Layer) ([]string, record, error) {
	dirs := []string{st.dir}
	if st.Kind == KindImage {
		dirs = s.chainDirs(st.chains)
	}
	rec := record{Stack: st.Name, Dirs: st.parts()}
	for _, l := range layers {
		m, err := s.layer(ctx, l)
		if err != nil {
			return nil, rec, err
		}
		key := l.key(s.cfg.IDMap)
		dirs = append(dirs, s.path("layers", key, "fs"))
		rec.Dirs = append(rec.Dirs, key)
		rec.LayerBytes += m.Bytes
	}
	for i, dir := range dirs {
		name, err := filepath.Rel(s.cfg.Dir, dir)
		if err != nil {
			return nil, rec, err
		}
		dirs[i] = name
	}
	slices.Reverse(dirs)
	return dirs, rec, nil
}

// claim makes the container's directory, below a mount of our own that no other namespace sees changes of.
func (s *Store) claim(id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := holdRun(s.path("run")); err != nil {
		return err
	}
	err := s.takeSpare(s.path("run", id))
	if errors.Is(err, fs.ErrExist) {
		return ErrMounted
	}
	return err
}

func (s *Store) assemble(r Request, rec record, lowers []string) error {
	dir := s.path("run", r.ID)
	if err := writeRecord(dir, rec); err != nil {
		return err
	}
	ids := s.users(rec)
	size := disk.Size{Bytes: r.DiskBytes, Inodes: r.Inodes}
	if r.DiskBytes > 0 {
		if size.Bytes -= rec.LayerBytes; size.Bytes <= 0 {
			return fmt.Errorf("layers of %d bytes do not fit a disk of %d", rec.LayerBytes, r.DiskBytes)
		}
	}
	if err := s.disks.Create(dir, size); err != nil {
		return err
	}
	upper, work := filepath.Join(dir, disk.Data, "upper"), filepath.Join(dir, disk.Data, "work")
	for _, d := range []string{upper, work, filepath.Join(dir, "root"), s.lowerPath(r.ID)} {
		if err := os.Mkdir(d, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	if err := errors.Join(settleNode(upper, node{mode: fs.ModeDir | 0o755}, ids), openTo(ids, dir)); err != nil {
		return err
	}
	return s.mountRoot(r, lowers, upper, work)
}

// Unmount takes away all that Mount made for id, or half made. An id that is not there is no error.
func (s *Store) Unmount(_ context.Context, id string) error {
	if err := checkID(id); err != nil {
		return err
	}
	defer s.locks.lock(id)()
	if err := s.dismantle(id); err != nil {
		return fmt.Errorf("unmount %s: %w", id, err)
	}
	return nil
}

func (s *Store) dismantle(id string) error {
	dir := s.path("run", id)
	if err := errors.Join(unmountAll(s.rootPath(id)), unmountAll(s.lowerPath(id))); err != nil {
		return err
	}
	if err := s.disks.Remove(dir); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.retire(dir); err != nil {
		return err
	}
	return s.releaseRunLocked()
}

// releaseRunLocked undoes holdRun after the last container.
func (s *Store) releaseRunLocked() error {
	entries, err := os.ReadDir(s.path("run"))
	if err != nil || slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name()[0] != '.' }) {
		return err
	}
	return unmountAll(s.path("run"))
}

// List returns, sorted, the id of every container that has a directory, a mount or a loop device in this store.
func (s *Store) List() ([]string, error) {
	ids := map[string]bool{}
	entries, err := os.ReadDir(s.path("run"))
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		ids[e.Name()] = true
	}
	mounts, err := mountsBelow(s.path("run"))
	if err != nil {
		return nil, err
	}
	loops, err := disk.Loops(s.path("run"))
	if err != nil {
		return nil, err
	}
	for _, l := range loops {
		mounts = append(mounts, l.File)
	}
	for _, m := range mounts {
		id, _, _ := strings.Cut(strings.TrimPrefix(m, s.path("run")+"/"), "/")
		ids[id] = true
	}
	maps.DeleteFunc(ids, func(id string, _ bool) bool { return checkID(id) != nil })
	return slices.Sorted(maps.Keys(ids)), nil
}

// writeRecord writes in place: a torn record is as good as none, since what it is of is mounted only afterwards.
func writeRecord(dir string, rec record) error {
	b, err := json.Marshal(rec)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, recordFile), b, 0o600)
}

func (s *Store) record(id string) (record, error) {
	var rec record
	b, err := os.ReadFile(s.path("run", id, recordFile))
	if err != nil {
		return rec, err
	}
	return rec, json.Unmarshal(b, &rec)
}

// mountedDirs returns the ids of stacks and keys of layers that containers' roots are made of.
func (s *Store) mountedDirs() (map[string]bool, error) {
	used := map[string]bool{}
	entries, err := os.ReadDir(s.path("run"))
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		rec, err := s.record(e.Name())
		if err != nil {
			continue // half made: nothing is mounted before its record is whole
		}
		for _, name := range rec.Dirs {
			used[name] = true
		}
	}
	return used, nil
}

// DiskUsage tells how many bytes of its quota a container takes: its layers' files and what it wrote.
func (s *Store) DiskUsage(id string) (int64, error) {
	if err := checkID(id); err != nil {
		return 0, err
	}
	rec, err := s.record(id)
	if err != nil {
		return 0, fmt.Errorf("disk usage of %s: %w", id, err)
	}
	n, err := s.disks.Used(s.path("run", id))
	return n + rec.LayerBytes, err
}
