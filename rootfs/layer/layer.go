// Package layer unpacks archives, such as droplets and buildpacks, once for all containers that show them in their roots.
package layer

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"cupola/rootfs/internal/store"
	"cupola/rootfs/tree"
	"cupola/rootfs/unpack"
	"cupola/runtime/contract"
	"cupola/runtime/durable"
	"cupola/runtime/fault"
	"cupola/runtime/users"
)

// Layer is an archive that a container's root shows unpacked at a directory.
type Layer struct {
	Digest   string // sha256 of the archive, in hex
	Archive  string // path of the zip or tar (plain, gzip, zstd, xz) on this machine, or what Kept found; read only when not unpacked yet
	Dest     string // absolute path in the container, such as /home/vcap
	UID, GID uint32 // ids in the container that own Dest and everything in it
}

// key names a layer's directory: equal keys mean equal files.
func (l Layer) key(ids users.Range) string {
	h := sha256.Sum256(fmt.Appendf(nil, "%q %d %d %d %d", path.Clean(l.Dest), l.UID, l.GID, ids.Base, ids.Size))
	return l.Digest + "-" + hex.EncodeToString(h[:4])
}

func (l Layer) check() error {
	if b, err := hex.DecodeString(l.Digest); err != nil || len(b) != sha256.Size || strings.ToLower(l.Digest) != l.Digest {
		return fmt.Errorf("layer digest %q is not a sha256 digest in hex", l.Digest)
	}
	if !path.IsAbs(l.Dest) {
		return fmt.Errorf("layer destination %q is not absolute", l.Dest)
	}
	return nil
}

// flight is a layer being unpacked for all who wait for it.
type flight struct {
	done    chan struct{}
	cancel  context.CancelFunc
	waiters int // guarded by Cache.mu
	mark    tree.Mark
	err     error
}

// Dir is the directory that the layers have in a store.
const Dir = "layers"

// Cache keeps unpacked layers. Its methods may be called at the same time.
type Cache struct {
	store   *store.Store
	opened  time.Time
	bg      sync.WaitGroup
	proofs  durable.Proofs[struct{}] // a kept layer is never written again
	keeping sync.Mutex               // held while a kept layer gets its name

	mu      sync.Mutex
	flights map[string]*flight   // layers being unpacked, by key
	kept    map[string]time.Time // when layers were kept, by digest; of those of the last grace
}

// New opens the layers of a store, and removes what a crash left half unpacked.
func New(s *store.Store) (*Cache, error) {
	return &Cache{store: s, opened: time.Now(), flights: map[string]*flight{}, kept: map[string]time.Time{}}, tree.RemovePartial(s.Path(Dir), s.Trash)
}

// Close waits for work in the background.
func (s *Cache) Close() { s.bg.Wait() }

// Keys checks layers and returns their names for a lease.
func (s *Cache) Keys(all []Layer) ([]string, error) {
	var keys []string
	for _, l := range all {
		if err := l.check(); err != nil {
			return nil, err
		}
		keys = append(keys, l.key(s.store.IDs))
	}
	return keys, nil
}

// Tree is the tree of an unpacked layer, relative to the store.
func (s *Cache) Tree(l Layer) string { return filepath.Join(Dir, l.key(s.store.IDs), tree.FS) }

// Unpack unpacks l unless it is there, once for all callers at the same time.
func (s *Cache) Unpack(ctx context.Context, l Layer) (tree.Mark, error) {
	key := l.key(s.store.IDs)
	if m, err := tree.ReadMark(s.store.Path(Dir, key)); err == nil {
		s.touch(key)
		if m.Kept {
			err = s.verify(ctx, s.store.Path(Dir, key), l.Digest)
		}
		return m, err
	}
	f := s.join(l, key)
	select {
	case <-f.done:
		return f.mark, f.err
	case <-ctx.Done():
		s.leave(f, key)
		return tree.Mark{}, context.Cause(ctx)
	}
}

// touch notes that a layer is used now.
func (s *Cache) touch(key string) {
	now := time.Now()
	_ = os.Chtimes(s.store.Path(Dir, key), now, now) // it only ages the layer early
}

func (s *Cache) join(l Layer, key string) *flight {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.flights[key]
	if f == nil {
		ctx, cancel := context.WithCancel(context.Background()) // it ends with the last waiter, not the first
		f = &flight{done: make(chan struct{}), cancel: cancel}
		s.flights[key] = f
		s.bg.Go(fault.Func("rootfs", func() { s.fly(ctx, f, l, key) }))
	}
	f.waiters++
	return f
}

func (s *Cache) leave(f *flight, key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.waiters--; f.waiters == 0 {
		f.cancel()
		s.landLocked(f, key)
	}
}

func (s *Cache) landLocked(f *flight, key string) {
	if s.flights[key] == f {
		delete(s.flights, key)
	}
}

// land ends what waits for a flight.
func (s *Cache) land(f *flight, key string) {
	defer f.cancel()
	defer close(f.done)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.landLocked(f, key)
}

func (s *Cache) fly(ctx context.Context, f *flight, l Layer, key string) {
	f.err = fault.Guard("rootfs", func() (err error) {
		f.mark, err = s.unpackLayer(ctx, l, key)
		return err
	})
	s.land(f, key)
	if f.err != nil {
		return
	}
	if err := tree.SyncMarked(s.store.Path(Dir, key)); err != nil && !errors.Is(err, fs.ErrNotExist) { // it may be pruned by now
		s.store.Log.Warn("layer was not synced", "err", err)
	}
}

// unpackLayer unpacks l next to its final place and renames it there.
func (s *Cache) unpackLayer(ctx context.Context, l Layer, key string) (tree.Mark, error) {
	final := s.store.Path(Dir, key)
	if m, err := tree.ReadMark(final); err == nil {
		return m, nil // another flight landed in between
	}
	tmp, err := os.MkdirTemp(s.store.Path(Dir), ".new-")
	if err != nil {
		return tree.Mark{}, err
	}
	m, err := s.fillLayer(ctx, l, tmp)
	if err == nil {
		err = os.Rename(tmp, final)
	}
	if err != nil {
		return tree.Mark{}, errors.Join(fmt.Errorf("unpack layer for %s: %w", l.Dest, err), s.store.Trash.Put(tmp))
	}
	return m, nil
}

func (s *Cache) fillLayer(ctx context.Context, l Layer, tmp string) (tree.Mark, error) {
	f, err := openArchive(ctx, l, tmp)
	if err != nil {
		return tree.Mark{}, err
	}
	defer f.Close()
	archive, err := unpack.Section(f)
	if err != nil {
		return tree.Mark{}, err
	}
	sum := make(chan error, 1)
	fault.Go("rootfs", func() { sum <- fault.Guard("rootfs", func() error { return unpack.Verify(ctx, archive, l.Digest) }) })
	stats, err := s.unpackAt(ctx, archive, filepath.Join(tmp, tree.FS), l, nil)
	if err := errors.Join(err, <-sum); err != nil {
		return tree.Mark{}, err
	}
	m := tree.NewMark()
	m.Digest, m.Dest, m.Bytes, m.Entries = l.Digest, path.Clean(l.Dest), stats.Bytes, stats.Entries
	return m, tree.WriteMark(tmp, m)
}

// openArchive opens a layer's archive. That of a kept layer is written into a file without a name.
func openArchive(ctx context.Context, l Layer, tmp string) (*os.File, error) {
	if info, err := os.Stat(l.Archive); err != nil || !info.IsDir() {
		return os.Open(l.Archive)
	}
	f, err := os.CreateTemp(tmp, "archive-")
	if err != nil {
		return nil, err
	}
	if err := errors.Join(os.Remove(f.Name()), writeArchive(ctx, l.Archive, l.Digest, f)); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// unpackAt makes the directories down to the layer's place in the new tree root and unpacks f there.
func (s *Cache) unpackAt(ctx context.Context, f *io.SectionReader, root string, l Layer, twins *unpack.Twins) (unpack.Stats, error) {
	if err := tree.Write(root, layerDirs(l), s.store.IDs); err != nil {
		return unpack.Stats{}, err
	}
	dir, err := os.Open(filepath.Join(root, filepath.FromSlash(path.Clean(l.Dest))))
	if err != nil {
		return unpack.Stats{}, err
	}
	defer dir.Close()
	return unpack.Into(ctx, dir, f, unpack.Options{Owner: tree.OwnedBy(s.store.IDs, tree.Owner{UID: l.UID, GID: l.GID}), Twins: twins, Limits: s.store.Limits})
}

// layerDirs are the directories from / down to a layer's place. In an overlay they cover the stack's own, so those that
// are special stay so.
func layerDirs(l Layer) []tree.Node {
	var nodes []tree.Node
	dest := strings.Trim(path.Clean(l.Dest), "/")
	if dest == "" {
		return nil
	}
	parts := strings.Split(dest, "/")
	for i := range parts {
		name := path.Join(parts[:i+1]...)
		n := tree.Dir(name, 0o755)
		switch name {
		case "tmp", "var/tmp":
			n.Mode = fs.ModeDir | fs.ModeSticky | 0o777
		case contract.Home[1:]:
			n.Owner = contract.VcapID
		}
		nodes = append(nodes, n)
	}
	if last := &nodes[len(nodes)-1]; last.Mode&fs.ModeSticky == 0 {
		last.Owner = l.UID
	}
	return nodes
}

// Prune deletes the unpacked layers whose archive's digest keep does not want, except for those that a container uses, and for
// those that were kept within the grace.
func (s *Cache) Prune(ctx context.Context, keep func(digest string) bool, grace time.Duration) error {
	return s.remove(ctx, func(key string) bool {
		digest, _, ok := strings.Cut(key, "-")
		return ok && !keep(digest) && (!isKept(s.store.Path(Dir, key)) || !s.recent(digest, grace))
	})
}

// Unused lists the unpacked layers that no container uses, and that can be unpacked again from their archives.
func (s *Cache) Unused(ctx context.Context) ([]tree.Unused, error) {
	inUse := map[string]bool{}
	if err := s.store.Collect(func(used func(string) bool) error {
		entries, err := os.ReadDir(s.store.Path(Dir))
		for _, e := range entries {
			inUse[e.Name()] = used(e.Name())
		}
		return err
	}); err != nil {
		return nil, err
	}
	return tree.List(ctx, s.store.Path(Dir), func(key string, _ time.Time) bool {
		used, known := inUse[key]
		return used || !known || isPartial(key) || isKept(s.store.Path(Dir, key))
	})
}

// Remove deletes unpacked layers by their names, except for those that a container uses by now.
func (s *Cache) Remove(ctx context.Context, keys []string) error {
	return s.remove(ctx, func(key string) bool { return slices.Contains(keys, key) && !isKept(s.store.Path(Dir, key)) })
}

func (s *Cache) remove(ctx context.Context, goes func(key string) bool) error {
	entries, err := os.ReadDir(s.store.Path(Dir))
	if err != nil {
		return err
	}
	return s.store.Collect(func(used func(string) bool) error {
		for _, e := range entries {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			key := e.Name()
			if isPartial(key) || used(key) || !goes(key) {
				continue
			}
			if err := s.store.Trash.Put(s.store.Path(Dir, key)); err != nil {
				return err
			}
			digest, _, _ := strings.Cut(key, "-")
			s.proofs.Forget(digest)
		}
		return nil
	})
}

// isPartial reports whether a layer is still being unpacked.
func isPartial(key string) bool { return strings.HasPrefix(key, ".") }
