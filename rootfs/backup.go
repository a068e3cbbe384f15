package rootfs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"cupola/rootfs/reference"
	"cupola/rootfs/unpack"
)

// SavedStack is a stack's description in a backup.
type SavedStack struct {
	Stack
	HasTree bool // an archive of its files is there too
}

// Kept is what a backup needs of the store, and keeps anything else from
// taking away until Release.
type Kept struct {
	Stacks  []SavedStack
	Images  []Image
	Release func()
	store   *Store
}

// Keep finds the stacks that are not the store's own, and the images that they
// are made of or that need wants.
func (s *Store) Keep(need func(digest string) bool) (*Kept, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := &Kept{store: s}
	var held []string
	wanted := map[string]bool{}
	for _, st := range s.stacks {
		switch st.Kind {
		case KindImage:
			wanted[st.Digest] = true
		case KindDir:
			held = append(held, st.id)
		default:
			continue
		}
		k.Stacks = append(k.Stacks, SavedStack{st, st.Kind == KindDir})
	}
	all, err := s.cachedImages()
	if err != nil {
		return nil, err
	}
	for _, c := range all {
		if !wanted[c.Digest] && !need(c.Digest) {
			continue
		}
		k.Images = append(k.Images, c.Image)
		for _, sum := range c.Blobs {
			held = append(held, blobName(sum))
		}
	}
	k.Release = s.holdLocked(held)
	return k, nil
}

// SaveImage links the files of an image into dirs: its record as
// <sha256>.json, and its blobs by their SHA-256. Each must be on the file system
// of the store.
func (k *Kept) SaveImage(digest, records, blobs string) error {
	c, err := k.store.cachedImage(digest)
	if err != nil {
		return fmt.Errorf("image %s: %w", digest, err)
	}
	record := k.store.recordPath(digest)
	if err := linkOnce(record, filepath.Join(records, filepath.Base(record))); err != nil {
		return err
	}
	for _, sum := range c.Blobs {
		if err := linkOnce(k.store.path("oci", sum), filepath.Join(blobs, sum)); err != nil {
			return fmt.Errorf("image %s: %w", c.Reference, err)
		}
	}
	return nil
}

// SaveFallbacks links what says where else images are to be had, if there is
// anything.
func (k *Kept) SaveFallbacks(to string) error {
	err := linkOnce(k.store.publishedPath(), to)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// linkOnce links a file, which images may share.
func linkOnce(from, to string) error {
	if err := os.Link(from, to); !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// SaveTree writes the files of a stack as a tar, owned as its containers see
// them.
func (k *Kept) SaveTree(ctx context.Context, name string, w io.Writer) error {
	st, ok := k.store.Stack(name)
	if !ok || st.Kind != KindDir {
		return fmt.Errorf("stack %q has no files here", name)
	}
	return packTree(ctx, st.dir, k.store.cfg.IDMap, w)
}

// SavedBlobs are the SHA-256 of the blobs that an image's record needs.
func SavedBlobs(record []byte) (digest string, blobs []string, err error) {
	var c cached
	if err := json.Unmarshal(record, &c); err != nil {
		return "", nil, fmt.Errorf("record of an image: %v", err)
	}
	return c.Digest, c.Blobs, nil
}

// RestoreStack makes a stack of what SaveTree wrote, or of an image that is in
// the store.
func (s *Store) RestoreStack(ctx context.Context, st SavedStack, lock []byte, tree string) error {
	n := NewStack{Name: st.Name, Compat: st.Compat, Description: st.Description, Origin: st.Origin}
	if !st.HasTree {
		_, err := s.AddImage(n, st.Digest)
		return err
	}
	_, err := s.add(ctx, n, func(ctx context.Context, _, dir string) (made, error) {
		return made{digest: st.Digest, lock: lock}, s.restoreTree(ctx, tree, dir)
	})
	return err
}

// restoreTree unpacks an archive that is trusted no more than any other: it may
// have no more bytes of files than it has itself.
func (s *Store) restoreTree(ctx context.Context, archive, dir string) error {
	f, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer f.Close()
	section, err := unpack.Section(f)
	if err != nil {
		return err
	}
	root, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	_, err = unpack.Into(ctx, root, section, unpack.Options{Image: true, Owner: s.shift(), Limits: unpack.Limits{Entries: -1, Bytes: max(section.Size(), 1)}})
	return err
}

// RestoreImage makes an image whole again of its record and its blobs, which
// are in the store under their SHA-256: it is unpacked as when it was pulled.
func (s *Store) RestoreImage(ctx context.Context, record []byte) error {
	var was cached
	if err := json.Unmarshal(record, &was); err != nil {
		return fmt.Errorf("record of an image: %v", err)
	}
	ref, err := reference.Parse(was.Reference)
	if err != nil {
		return err
	}
	if !reference.IsDigest(was.Digest) {
		return fmt.Errorf("image %s has the digest %q", ref, was.Digest)
	}
	defer s.locks.lock("image " + was.Digest)()
	p := newPull(s, ref, PullOptions{})
	p.digest, p.connects = was.Digest, []func(context.Context) (origin, error){func(context.Context) (origin, error) { return nowhere{}, nil }}
	defer p.release()
	if err := p.describe(ctx); err != nil {
		return fmt.Errorf("image %s: %w", ref, err)
	}
	p.hold(p.names()...)
	c, err := p.layers(ctx)
	if err != nil {
		return fmt.Errorf("image %s: %w", ref, err)
	}
	c.Reference, c.Origins, c.Repositories, c.Pulled, c.Compat = was.Reference, was.Origins, was.Repositories, was.Pulled, was.Compat
	return p.commit(c)
}

// nowhere is the origin of an image whose files are all here, or lost.
type nowhere struct{}

func (nowhere) manifest(_ context.Context, digest string) ([]byte, error) {
	return nil, fmt.Errorf("%s is missing: %w", digest, ErrImageMissing)
}

func (nowhere) blob(_ context.Context, digest string, _ int64) (io.ReadCloser, int64, error) {
	return nil, 0, fmt.Errorf("%s is missing: %w", digest, ErrImageMissing)
}

// ownerInside is the container's id of a host's one: the inverse of Host.
func (m IDMap) ownerInside(id uint32) uint32 {
	if m.Size > 0 && id >= m.Base && id-m.Base < m.Size {
		return id - m.Base
	}
	return id
}
