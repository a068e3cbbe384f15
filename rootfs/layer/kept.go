package layer

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"cupola/rootfs/pack"
	"cupola/rootfs/tree"
	"cupola/rootfs/unpack"
	"cupola/runtime/contract"
	"cupola/runtime/durable"
	"cupola/runtime/fault"
)

// A kept layer stands for its archive, which is nowhere else: what a container starts from and what an archive is made of are
// the same files, written once. Its digest is that of the archive that WriteArchive makes of it, the same each time.

// Keep unpacks an archive into a layer that is kept. When it returns, all of it is on the disk. size is that of the archive that
// WriteArchive writes. l.Digest and l.Archive are not looked at. like are digests of kept layers that the archive may have files
// of, which are then on the disk once. The error may be ErrNotKept.
func (s *Cache) Keep(ctx context.Context, archive *os.File, l Layer, like ...string) (digest string, size int64, err error) {
	return s.keep(ctx, archive, l, tree.NewMark(), like)
}

// KeepZip is Keep of the files of an app, whose archive is a zip. The digest is "" instead of ErrNotKept, and where there is no room
// for the files beside the zip.
func (s *Cache) KeepZip(ctx context.Context, archive *os.File, like ...string) (digest string, size int64, err error) {
	m := tree.NewMark()
	m.Zip = true
	digest, size, err = s.keep(ctx, archive, Layer{Dest: "/", UID: contract.VcapID, GID: contract.VcapID}, m, like)
	if errors.Is(err, ErrNotKept) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return "", 0, nil
	}
	return digest, size, err
}

func (s *Cache) keep(ctx context.Context, archive *os.File, l Layer, m tree.Mark, like []string) (digest string, size int64, err error) {
	tmp, err := os.MkdirTemp(s.store.Path(Dir), ".new-")
	if err != nil {
		return "", 0, err
	}
	if m, err = s.fillKept(ctx, archive, l, m, like, tmp); err == nil {
		l.Digest = m.Digest
		err = s.install(ctx, l, tmp)
	}
	if err != nil {
		return "", 0, errors.Join(fmt.Errorf("keep a layer for %s: %w", l.Dest, err), s.store.Trash.Put(tmp))
	}
	return m.Digest, m.Size, nil
}

func (s *Cache) fillKept(ctx context.Context, f *os.File, l Layer, m tree.Mark, like []string, tmp string) (tree.Mark, error) {
	archive, err := unpack.Section(f)
	if err != nil {
		return m, err
	}
	twins, release, err := s.twins(ctx, like)
	if err != nil {
		return m, err
	}
	defer release()
	stats, err := s.unpackAt(ctx, archive, filepath.Join(tmp, tree.FS), l, twins)
	if fault, ok := errors.AsType[*unpack.EntryError](err); ok {
		return m, fmt.Errorf("%w: %w", ErrNotKept, fault) // to be said when the archive is used
	}
	if err != nil {
		return m, err
	}
	m.Kept, m.Synced, m.Dest, m.Bytes, m.Entries = true, true, path.Clean(l.Dest), stats.Bytes, stats.Entries
	return finishKept(ctx, m, tmp)
}

// finishKept brings the files in tmp to the disk while it reads them for their digest, and then the mark.
func finishKept(ctx context.Context, m tree.Mark, tmp string) (tree.Mark, error) {
	synced := make(chan error, 1)
	fault.Go("rootfs", func() {
		synced <- fault.Guard("rootfs", func() error { return tree.SyncTree(filepath.Join(tmp, tree.FS)) })
	})
	var err error
	m.Digest, m.Size, err = sum(ctx, tmp, m)
	if err := errors.Join(err, <-synced); err != nil {
		return m, err
	}
	if err := tree.WriteMark(tmp, m); err != nil {
		return m, err
	}
	return m, errors.Join(durable.Sync(filepath.Join(tmp, tree.MarkFile)), durable.Sync(tmp))
}

// twins finds the files of kept layers. Until release is called, they are not deleted.
func (s *Cache) twins(ctx context.Context, like []string) (t *unpack.Twins, release func(), err error) {
	var files []string
	release, err = s.store.Hold(func() (names []string, _ error) {
		for _, digest := range like {
			if dir, ok := s.Kept(digest); ok {
				names, files = append(names, filepath.Base(dir)), append(files, filepath.Join(dir, tree.FS))
			}
		}
		return names, nil
	})
	if err != nil || len(files) == 0 {
		return nil, release, err
	}
	if t, err = unpack.FindTwins(ctx, files...); err != nil {
		s.store.Log.WarnContext(ctx, "files of an archive are stored again", "err", err)
	}
	return t, release, nil
}

// ErrNotKept says that a layer cannot stand for its archive, which must be stored itself.
var ErrNotKept = errors.New("a layer cannot stand for this archive")

// install gives a kept layer its name. A sound one of that name stays.
func (s *Cache) install(ctx context.Context, l Layer, tmp string) error {
	key := l.key(s.store.IDs)
	final := s.store.Path(Dir, key)
	s.keeping.Lock()
	defer s.keeping.Unlock()
	s.noteKept(l.Digest)
	if isKept(final) {
		switch err := writeArchive(ctx, final, l.Digest, io.Discard); {
		case err == nil:
			return s.store.Trash.Put(tmp)
		case ctx.Err() != nil:
			return err
		}
		if err := s.discard(key); err != nil {
			return err
		}
	}
	err := os.Rename(tmp, final)
	if errors.Is(err, fs.ErrExist) {
		return ErrNotKept // its archive is here, too, and the layer can go at any time
	}
	if err != nil {
		return err
	}
	s.proofs.Found(l.Digest, struct{}{})
	return durable.Sync(s.store.Path(Dir))
}

// discard deletes a damaged layer that no container uses.
func (s *Cache) discard(key string) error {
	return s.store.Collect(func(used func(string) bool) error {
		if used(key) {
			return fmt.Errorf("%w, and containers use the damaged files: stop the app", durable.ErrDamaged)
		}
		return s.store.Trash.Put(s.store.Path(Dir, key))
	})
}

// Kept finds the directory of a kept layer.
func (s *Cache) Kept(digest string) (dir string, ok bool) { return Kept(s.store.Path(Dir), digest) }

// Kept finds the directory of a kept layer in a directory of layers.
func Kept(layers, digest string) (dir string, ok bool) {
	found, err := filepath.Glob(filepath.Join(layers, digest+"-*"))
	if err != nil {
		return "", false
	}
	for _, dir := range found {
		if isKept(dir) {
			return dir, true
		}
	}
	return "", false
}

func isKept(dir string) bool {
	m, err := tree.ReadMark(dir)
	return err == nil && m.Kept
}

// AllKept lists the directories of kept layers by their digests.
func (s *Cache) AllKept() (map[string]string, error) {
	entries, err := os.ReadDir(s.store.Path(Dir))
	if err != nil {
		return nil, err
	}
	all := map[string]string{}
	for _, e := range entries {
		digest, _, ok := strings.Cut(e.Name(), "-")
		if dir := s.store.Path(Dir, e.Name()); ok && !isPartial(e.Name()) && isKept(dir) {
			all[digest] = dir
		}
	}
	return all, nil
}

// WriteArchive writes the archive of a kept layer: a zip or, in the form of gzip, a tar. The error is fs.ErrNotExist where none is
// kept, and durable.ErrDamaged after all was written, if its files have changed.
func (s *Cache) WriteArchive(ctx context.Context, digest string, w io.Writer) error {
	dir, release, err := s.hold(digest)
	if err != nil {
		return err
	}
	defer release()
	return writeArchive(ctx, dir, digest, w)
}

// hold finds the directory of a kept layer, which is not deleted until release is called.
func (s *Cache) hold(digest string) (dir string, release func(), err error) {
	release, err = s.store.Hold(func() ([]string, error) {
		var ok bool
		if dir, ok = s.Kept(digest); !ok {
			return nil, fmt.Errorf("layer %s: %w", digest, fs.ErrNotExist)
		}
		return []string{filepath.Base(dir)}, nil
	})
	return dir, release, err
}

// Copy writes the files of a kept layer, which are sound, into a directory. dir is what Kept found.
func (s *Cache) Copy(ctx context.Context, dir string, to *os.File, o unpack.Options) error {
	defer s.store.HoldNames(filepath.Base(dir))()
	m, err := tree.ReadMark(dir)
	if err != nil {
		return err
	}
	if err := s.verify(ctx, dir, m.Digest); err != nil {
		return err
	}
	_, err = unpack.Copy(ctx, to, filesOf(dir, m), o)
	return err
}

// OpenFile opens a file of a kept layer by its name in the archive. The error is fs.ErrNotExist where there is none.
func (s *Cache) OpenFile(digest, name string) (*os.File, error) {
	dir, release, err := s.hold(digest)
	if err != nil {
		return nil, err
	}
	defer release()
	m, err := tree.ReadMark(dir)
	if err != nil {
		return nil, err
	}
	root, err := os.Open(filesOf(dir, m))
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return tree.OpenRegular(root, name)
}

// filesOf is the directory of what is in the archive of a kept layer.
func filesOf(dir string, m tree.Mark) string {
	return filepath.Join(dir, tree.FS, filepath.FromSlash(m.Dest))
}

// writeArchive writes the archive of the layer in dir, and compares its digest.
func writeArchive(ctx context.Context, dir, digest string, w io.Writer) error {
	m, err := tree.ReadMark(dir)
	if err != nil {
		return err
	}
	h := sha256.New()
	if err := packKept(ctx, dir, m, io.MultiWriter(h, w)); err != nil {
		return err
	}
	if is := hex.EncodeToString(h.Sum(nil)); is != digest {
		return fmt.Errorf("layer %s: %w: its files have the SHA-256 %s", digest, durable.ErrDamaged, is)
	}
	return nil
}

// packKept writes the same bytes for the same files, whatever their owner. Their digest stands in rows: no later
// version may write others.
func packKept(ctx context.Context, dir string, m tree.Mark, w io.Writer) error {
	if m.Zip {
		return pack.Zip(ctx, filesOf(dir, m), w)
	}
	z := pack.NewStored(w)
	all := pack.Options{Layer: true, Dot: true, Owner: func(uint32) uint32 { return contract.VcapID }}
	if err := pack.Tree(ctx, filesOf(dir, m), all, z); err != nil {
		return err
	}
	return z.Close()
}

func sum(ctx context.Context, dir string, m tree.Mark) (digest string, size int64, err error) {
	h, n := sha256.New(), &counter{}
	if err := packKept(ctx, dir, m, io.MultiWriter(h, n)); err != nil {
		return "", 0, err
	}
	return hex.EncodeToString(h.Sum(nil)), n.bytes, nil
}

type counter struct{ bytes int64 }

func (c *counter) Write(b []byte) (int, error) {
	c.bytes += int64(len(b))
	return len(b), nil
}

// verify reads a kept layer, unless it was found sound just now.
func (s *Cache) verify(ctx context.Context, dir, digest string) error {
	return s.proofs.Verify(digest, func() (struct{}, error) { return struct{}{}, nil }, func() error { return writeArchive(ctx, dir, digest, io.Discard) })
}

// noteKept begins a kept layer's grace.
func (s *Cache) noteKept(digest string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept[digest] = time.Now()
}

// recent reports whether a layer was kept within the grace. Those of before New count as kept then: an event may be about to
// name them.
func (s *Cache) recent(digest string, grace time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.kept, func(_ string, at time.Time) bool { return time.Since(at) > grace })
	at, ok := s.kept[digest]
	if !ok {
		at = s.opened
	}
	return time.Since(at) <= grace
}
