package root

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
	"cupola/rootfs/internal/store"
	"cupola/rootfs/layer"
	"cupola/rootfs/overlay"
	"cupola/rootfs/stack"
	"cupola/rootfs/tree"
	"cupola/runtime/users"
)

// Request asks for the root of one container.
type Request struct {
	ID string // names the container; letters, digits, '-', '_' and '.'
	// Stack is a stack's name, or a RootFS as reference.Parse reads it. An image is named by its digest and must be in the cache,
	// or else the error is image.ErrNotPulled.
	Stack     string
	Layers    []layer.Layer // later ones lie above earlier ones
	DiskBytes int64         // the layers' files and what the container writes; 0 is unlimited
	Inodes    int64         // 0, or more than disk.MaxInodes, is disk.MaxInodes
	// Users are the host's IDs of the container's users, when Shifts says that it can have its own. The zero value is the IDs that
	// own all files on disk.
	Users users.Range
	// ShowLayers fills in Root.Layers.
	ShowLayers bool
}

// Root is a mounted root.
type Root struct {
	Path string // on the host
	// Binds are what the container's engine must bind into it, in this order, recursively (there may be mounts below a
	// source), nosuid and nodev: the host stack's /usr and its like.
	Binds []stack.Bind
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
	Users      users.Range // zero: those on disk
}

const recordFile = "root.json"

// Mount makes the root of a container. When it returns an error, nothing of it stays.
func (s *Roots) Mount(ctx context.Context, r Request) (Root, error) {
	if err := checkID(r.ID); err != nil {
		return Root{}, err
	}
	defer s.locks.Lock(r.ID)()
	keys, err := s.layers.Keys(r.Layers)
	if err != nil {
		return Root{}, err
	}
	st, release, err := s.stacks.Use(ctx, r.Stack, keys...) // by the release the record holds what the root is made of
	if err != nil {
		return Root{}, err
	}
	defer release()
	lowers, rec, err := s.lowers(ctx, st, r.Layers)
	if err != nil {
		return Root{}, err
	}
	size, err := sizeOf(r, rec)
	if err != nil {
		return Root{}, fmt.Errorf("mount %s: %w", r.ID, err)
	}
	ready, err := s.claim(r.ID, size)
	if err != nil {
		return Root{}, fmt.Errorf("mount %s: %w", r.ID, err)
	}
	rec.Dirs, rec.Users = append(rec.Dirs, keys...), r.Users
	if err := s.assemble(r, rec, lowers, size, ready); err != nil {
		return Root{}, errors.Join(fmt.Errorf("mount %s: %w", r.ID, err), s.dismantle(r.ID))
	}
	s.expect(size)
	return Root{Path: s.rootPath(r.ID), Binds: st.Binds(), Layers: s.layerPaths(r)}, nil
}

func (s *Roots) layerPaths(r Request) []string {
	if !r.ShowLayers {
		return nil
	}
	base := s.store.Dir
	if s.shifted(r.Users) {
		base = s.lowerPath(r.ID)
	}
	var paths []string
	for _, l := range r.Layers {
		paths = append(paths, filepath.Join(base, s.layers.Tree(l), l.Dest))
	}
	return paths
}

func (s *Roots) rootPath(id string) string { return s.store.Path(rootsDir, id, "root") }

// lowers unpacks missing layers and returns the overlay's lower directories, relative to the store, the topmost first.
func (s *Roots) lowers(ctx context.Context, st stack.Stack, layers []layer.Layer) ([]string, record, error) {
	rec := record{Stack: st.Name, Dirs: slices.Clone(st.Parts())}
	var dirs []string
	for _, dir := range st.Dirs() {
		name, err := filepath.Rel(s.store.Dir, dir)
		if err != nil {
			return nil, rec, err
		}
		dirs = append(dirs, name)
	}
	for _, l := range layers {
		m, err := s.layers.Unpack(ctx, l)
		if err != nil {
			return nil, rec, err
		}
		dirs = append(dirs, s.layers.Tree(l))
		rec.LayerBytes += m.Bytes
	}
	slices.Reverse(dirs)
	return dirs, rec, nil
}

// sizeOf is what a container can write.
func sizeOf(r Request, rec record) (disk.Size, error) {
	size := disk.Size{Bytes: r.DiskBytes, Inodes: r.Inodes}
	if r.DiskBytes > 0 {
		if size.Bytes -= rec.LayerBytes; size.Bytes <= 0 {
			return size, fmt.Errorf("layers of %d bytes do not fit a disk of %d", rec.LayerBytes, r.DiskBytes)
		}
	}
	return size, nil
}

// claim makes the container's directory, below a private mount: no other namespace sees what is mounted there. It reports
// whether the container's disk is mounted already.
func (s *Roots) claim(id string, size disk.Size) (ready bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := overlay.MakePrivate(s.store.Path(rootsDir)); err != nil {
		return false, err
	}
	ready, err = s.take(s.store.Path(rootsDir, id), size)
	if errors.Is(err, fs.ErrExist) {
		return false, ErrMounted
	}
	return ready, err
}

// upperDir and workDir are those of the overlay, in a container's directory; parts are all directories there, once it has a disk.
var (
	upperDir = filepath.Join(disk.Data, "upper")
	workDir  = filepath.Join(disk.Data, "work")
	parts    = []string{upperDir, workDir, "root", lowerDir}
)

func (s *Roots) makeDisk(dir string, size disk.Size) error {
	if err := s.disks.Create(dir, size); err != nil {
		return err
	}
	for _, name := range parts {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}

func (s *Roots) assemble(r Request, rec record, lowers []string, size disk.Size, ready bool) error {
	dir := s.store.Path(rootsDir, r.ID)
	if err := writeRecord(dir, rec); err != nil {
		return err
	}
	ids := s.users(rec)
	if !ready {
		if err := s.makeDisk(dir, size); err != nil {
			return err
		}
	}
	upper, work := filepath.Join(dir, upperDir), filepath.Join(dir, workDir)
	if err := errors.Join(tree.SetOwner(upper, tree.Dir("", 0o755), ids), openTo(ids, dir)); err != nil {
		return err
	}
	return s.mountRoot(r, lowers, upper, work)
}

// Unmount removes all that Mount made for id, or half made. An id that is not there is no error.
func (s *Roots) Unmount(_ context.Context, id string) error {
	if err := checkID(id); err != nil {
		return err
	}
	defer s.locks.Lock(id)()
	if err := s.dismantle(id); err != nil {
		return fmt.Errorf("unmount %s: %w", id, err)
	}
	return nil
}

func (s *Roots) dismantle(id string) error {
	dir := s.store.Path(rootsDir, id)
	if err := errors.Join(overlay.Unmount(s.rootPath(id)), overlay.Unmount(s.lowerPath(id))); err != nil {
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
	return s.releaseRun()
}

// releaseRun undoes the private mount after the last container. s.mu is held.
func (s *Roots) releaseRun() error {
	entries, err := os.ReadDir(s.store.Path(rootsDir))
	if err != nil || slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name()[0] != '.' }) {
		return err
	}
	s.dropReady(len(s.ready))
	return overlay.Unmount(s.store.Path(rootsDir))
}

// List returns, sorted, the id of every container that has a directory, a mount or a loop device in this store.
func (s *Roots) List() ([]string, error) {
	ids := map[string]bool{}
	entries, err := os.ReadDir(s.store.Path(rootsDir))
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		ids[e.Name()] = true
	}
	mounts, err := overlay.MountsBelow(s.store.Path(rootsDir))
	if err != nil {
		return nil, err
	}
	loops, err := disk.Loops(s.store.Path(rootsDir))
	if err != nil {
		return nil, err
	}
	for _, l := range loops {
		mounts = append(mounts, l.File)
	}
	for _, m := range mounts {
		id, _, _ := strings.Cut(strings.TrimPrefix(m, s.store.Path(rootsDir)+"/"), "/")
		ids[id] = true
	}
	maps.DeleteFunc(ids, func(id string, _ bool) bool { return checkID(id) != nil })
	return slices.Sorted(maps.Keys(ids)), nil
}

// writeRecord writes in place: a torn record is as good as none, since nothing is mounted before it is whole.
func writeRecord(dir string, rec record) error {
	b, err := json.Marshal(rec)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, recordFile), b, 0o600)
}

func (s *Roots) record(id string) (record, error) { return readRecord(s.store, id) }

func readRecord(s *store.Store, id string) (record, error) {
	var rec record
	b, err := os.ReadFile(s.Path(rootsDir, id, recordFile))
	if err != nil {
		return rec, err
	}
	return rec, json.Unmarshal(b, &rec)
}

// Mounted returns the names of what the roots of containers in a store are made of: parts of stacks, and keys of layers.
func Mounted(s *store.Store) (map[string]bool, error) {
	used := map[string]bool{}
	entries, err := os.ReadDir(s.Path(rootsDir))
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		rec, err := readRecord(s, e.Name())
		if err != nil {
			continue // half made: nothing is mounted before its record is whole
		}
		for _, name := range rec.Dirs {
			used[name] = true
		}
	}
	return used, nil
}

// DiskUsage returns how many bytes of its quota a container uses: its layers' files and what it wrote.
func (s *Roots) DiskUsage(id string) (int64, error) {
	if err := checkID(id); err != nil {
		return 0, err
	}
	rec, err := s.record(id)
	if err != nil {
		return 0, fmt.Errorf("disk usage of %s: %w", id, err)
	}
	n, err := s.disks.Used(s.store.Path(rootsDir, id))
	return n + rec.LayerBytes, err
}
