package rootfs

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
	"strings"

	"cupola/rootfs/unpack"
	"cupola/runtime/contract"
	"cupola/runtime/fault"
)

// Layer is an archive that a container's root shows unpacked at a directory.
type Layer struct {
	Digest   string // sha256 of the archive, in hex
	Archive  string // path of the zip or tar (plain, gzip, zstd, xz) on this machine; read only when not unpacked yet
	Dest     string // absolute path in the container, such as /home/vcap
	UID, GID uint32 // ids in the container that own Dest and everything in it
}

// key names a layer's directory: equal keys mean equal files.
func (l Layer) key(ids IDMap) string {
	h := sha256.Sum256(fmt.Appendf(nil, "%q %d %d %d %d", path.Clean(l.Dest), l.UID, l.GID, ids.Base, ids.Size))
	return l.Digest + "-" + hex.EncodeToString(h[:4])
}

func (l Layer) check() error {
	if b, err := hex.DecodeString(l.Digest); err != nil || len(b) != sha256.Size || strings.ToLower(l.Digest) != l.Digest {
		return fmt.Errorf("layer digest %q is no sha256 in hex", l.Digest)
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
	waiters int // guarded by Store.mu
	mark    mark
	err     error
}

// layer makes sure that l is unpacked, doing it once for all callers at the same time.
func (s *Store) layer(ctx context.Context, l Layer) (mark, error) {
	key := l.key(s.cfg.IDMap)
	if m, err := readMark(s.path("layers", key)); err == nil {
		return m, nil
	}
	f := s.join(l, key)
	select {
	case <-f.done:
		return f.mark, f.err
	case <-ctx.Done():
		s.leave(f, key)
		return mark{}, context.Cause(ctx)
	}
}

func (s *Store) join(l Layer, key string) *flight {
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

func (s *Store) leave(f *flight, key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.waiters--; f.waiters == 0 {
		f.cancel()
		s.landLocked(f, key)
	}
}

func (s *Store) landLocked(f *flight, key string) {
	if s.flights[key] == f {
		delete(s.flights, key)
	}
}

// land ends what waits for a flight.
func (s *Store) land(f *flight, key string) {
	defer f.cancel()
	defer close(f.done)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.landLocked(f, key)
}

func (s *Store) fly(ctx context.Context, f *flight, l Layer, key string) {
	f.err = fault.Guard("rootfs", func() (err error) {
		f.mark, err = s.unpackLayer(ctx, l, key)
		return err
	})
	s.land(f, key)
	if f.err != nil {
		return
	}
	if err := settleTree(s.path("layers", key)); err != nil && !errors.Is(err, fs.ErrNotExist) { // it may be pruned by now
		s.log.Warn("layer was not synced", "err", err)
	}
}

// unpackLayer unpacks l beside its final place and renames it there.
func (s *Store) unpackLayer(ctx context.Context, l Layer, key string) (mark, error) {
	final := s.path("layers", key)
	if m, err := readMark(final); err == nil {
		return m, nil // another flight landed in between
	}
	tmp, err := os.MkdirTemp(s.path("layers"), ".new-")
	if err != nil {
		return mark{}, err
	}
	m, err := s.fillLayer(ctx, l, tmp)
	if err == nil {
		err = os.Rename(tmp, final)
	}
	if err != nil {
		return mark{}, errors.Join(fmt.Errorf("unpack layer for %s: %w", l.Dest, err), s.trash.put(tmp))
	}
	return m, nil
}

func (s *Store) fillLayer(ctx context.Context, l Layer, tmp string) (mark, error) {
	f, err := os.Open(l.Archive)
	if err != nil {
		return mark{}, err
	}
	defer f.Close()
	archive, err := unpack.Section(f)
	if err != nil {
		return mark{}, err
	}
	sum := make(chan error, 1)
	fault.Go("rootfs", func() { sum <- fault.Guard("rootfs", func() error { return verify(ctx, archive, l.Digest) }) })
	stats, err := s.unpackAt(ctx, archive, filepath.Join(tmp, "fs"), l)
	if err := errors.Join(err, <-sum); err != nil {
		return mark{}, err
	}
	m := newMark()
	m.Digest, m.Dest, m.Bytes, m.Entries = l.Digest, path.Clean(l.Dest), stats.Bytes, stats.Entries
	return m, writeMark(tmp, m)
}

// unpackAt makes the directories down to the layer's place in the new tree root and unpacks f there.
func (s *Store) unpackAt(ctx context.Context, f *io.SectionReader, root string, l Layer) (unpack.Stats, error) {
	if err := writeTree(root, layerDirs(l), s.cfg.IDMap); err != nil {
		return unpack.Stats{}, err
	}
	dir, err := os.Open(filepath.Join(root, filepath.FromSlash(path.Clean(l.Dest))))
	if err != nil {
		return unpack.Stats{}, err
	}
	defer dir.Close()
	return unpack.Into(ctx, dir, f, unpack.Options{Owner: s.cfg.IDMap.owner(l.UID, l.GID), Limits: s.cfg.Limits})
}

// layerDirs are the directories from / down to a layer's place. In an overlay they cover the stack's own, so those that
// are special stay so.
func layerDirs(l Layer) []node {
	var nodes []node
	dest := strings.Trim(path.Clean(l.Dest), "/")
	if dest == "" {
		return nil
	}
	parts := strings.Split(dest, "/")
	for i := range parts {
		name := path.Join(parts[:i+1]...)
		n := dirNode(name, 0o755)
		switch name {
		case "tmp", "var/tmp":
			n.mode = fs.ModeDir | fs.ModeSticky | 0o777
		case contract.Home[1:]:
			n.owner = contract.VcapID
		}
		nodes = append(nodes, n)
	}
	if last := &nodes[len(nodes)-1]; last.mode&fs.ModeSticky == 0 {
		last.owner = l.UID
	}
	return nodes
}

// owner returns the owner of all files of an application archive, or nil when this process may not give files away.
func (m IDMap) owner(uid, gid uint32) func(int, int) (int, int) {
	if !privileged() {
		return nil
	}
	u, g := int(m.Host(uid)), int(m.Host(gid))
	return func(int, int) (int, int) { return u, g }
}

// verify compares an archive's sha256 with digest.
func verify(ctx context.Context, archive *io.SectionReader, digest string) error {
	got, err := digestOf(ctx, archive)
	if err == nil && got != digest {
		err = fmt.Errorf("archive has the digest %s, not %s", got, digest)
	}
	return err
}

// digestOf returns an archive's sha256 in hex.
func digestOf(ctx context.Context, archive *io.SectionReader) (string, error) {
	h := sha256.New()
	buf := make([]byte, 1<<20)
	r := io.NewSectionReader(archive, 0, archive.Size())
	for {
		n, err := r.Read(buf)
		h.Write(buf[:n])
		if err == io.EOF {
			return hex.EncodeToString(h.Sum(nil)), nil
		}
		if err := errors.Join(err, ctx.Err()); err != nil {
			return "", err
		}
	}
}

// dropHalfLayers removes what a crash left half unpacked, or unsynced when the machine went down.
func (s *Store) dropHalfLayers() error {
	entries, err := os.ReadDir(s.path("layers"))
	if err != nil {
		return err
	}
	for _, e := range entries {
		dir := s.path("layers", e.Name())
		if m, err := readMark(dir); err == nil && m.whole() && !strings.HasPrefix(e.Name(), ".") {
			continue
		}
		if err := s.trash.put(dir); err != nil {
			return err
		}
	}
	return nil
}

// Prune deletes the unpacked layers whose archive's digest keep does not want, but for those a container uses. They can
// be unpacked again from their archives at any time.
func (s *Store) Prune(ctx context.Context, keep func(digest string) bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	used, err := s.mountedDirs()
	if err != nil {
		return err
	}
	entries, err := os.ReadDir(s.path("layers"))
	if err != nil {
		return err
	}
	for _, e := range entries {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		key := e.Name()
		digest, _, ok := strings.Cut(key, "-")
		if !ok || strings.HasPrefix(key, ".") || used[key] || s.using[key] > 0 || keep(digest) {
			continue
		}
		if err := s.trash.put(s.path("layers", key)); err != nil {
			return err
		}
	}
	return nil
}
