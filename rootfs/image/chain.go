package image

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"cupola/rootfs/oci"
	"cupola/rootfs/overlay"
	"cupola/rootfs/tree"
	"cupola/rootfs/unpack"
	"cupola/runtime/users"
)

// A chain is a layer of an image above all those below it: the same tar above other layers makes other files, where it
// writes through their links or removes what they have. So a layer is unpacked through an overlay of those below, and
// what it changed is kept in a directory that is a lower directory of containers' overlays.

// chainKey names a chain's directory. Overlay's options have room for 4 KiB of names, so it is short; the mark in the
// directory has the chain's full digest.
func chainKey(digest string, ids users.Range) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d %d", digest, ids.Base, ids.Size))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:])[:20])
}

// chainDigest is OCI's ChainID: of a layer with the given diffID above the chain below, "" for none.
func chainDigest(below, diffID string) string {
	if below == "" {
		return diffID
	}
	return oci.Digest([]byte(below + " " + diffID))
}

// chain makes sure that a chain is unpacked. fill writes its layer into the root that the chains below show, the lowest
// first.
func (s *Cache) chain(digest string, below []string, fill func(root *os.File, m *tree.Mark) error) (tree.Mark, error) {
	key := chainKey(digest, s.store.IDs)
	defer s.locks.Lock("chain " + key)()
	final := s.store.Path("chains", key)
	if m, err := tree.ReadMark(final); err == nil && m.Whole() {
		if m.Digest != digest {
			return tree.Mark{}, fmt.Errorf("layers %s and %s have the same name here", digest, m.Digest)
		}
		return m, nil
	}
	if err := s.store.Trash.Put(final); err != nil {
		return tree.Mark{}, err
	}
	tmp, err := os.MkdirTemp(s.store.Path("chains"), ".new-")
	if err != nil {
		return tree.Mark{}, err
	}
	m := tree.NewMark()
	m.Digest = digest
	err = s.fillChain(tmp, below, func(root *os.File) error { return fill(root, &m) })
	if err == nil {
		err = tree.WriteMark(tmp, m)
	}
	if err == nil {
		err = os.Rename(tmp, final)
	}
	if err != nil {
		return tree.Mark{}, errors.Join(err, s.store.Trash.Put(tmp))
	}
	return m, nil
}

// fillChain calls fill with the root of a new tree above the chains below.
func (s *Cache) fillChain(tmp string, below []string, fill func(root *os.File) error) error {
	dir := filepath.Join(tmp, tree.FS)
	if err := tree.Write(dir, nil, s.store.IDs); err != nil {
		return err
	}
	if len(below) == 0 {
		root, err := os.Open(dir)
		if err != nil {
			return err
		}
		defer root.Close()
		return fill(root)
	}
	if err := tree.CopyRoot(dir, s.store.Path("chains", below[len(below)-1], tree.FS)); err != nil {
		return err
	}
	work, point := filepath.Join(tmp, "work"), filepath.Join(tmp, "root")
	for _, dir := range []string{work, point} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return err
		}
	}
	o := overlay.Overlay{Base: s.store.Path("chains"), Point: point, Upper: dir, Work: work}
	for _, key := range slices.Backward(below) {
		o.Lowers = append(o.Lowers, filepath.Join(key, tree.FS))
	}
	if err := o.Build(s.store.Path("run"), fill); err != nil {
		return err
	}
	return errors.Join(s.store.Trash.Put(work), os.Remove(point))
}

// unpackLayer writes one layer of an image into the root of those below it, and checks that it is what the image says.
func (s *Cache) unpackLayer(ctx context.Context, root, archive *os.File, diffID string, o unpack.Options) (unpack.Stats, error) {
	section, err := unpack.Section(archive)
	if err != nil {
		return unpack.Stats{}, err
	}
	sum := sha256.New()
	o.Image, o.Owner, o.Plain = true, tree.Shifted(s.store.IDs), sum
	stats, err := unpack.Into(ctx, root, section, o)
	if err != nil {
		return stats, err
	}
	if got := fmt.Sprintf("sha256:%x", sum.Sum(nil)); got != diffID {
		return stats, &damagedError{fmt.Sprintf("it unpacks to %s, not to the %s that the image says", got, diffID)}
	}
	return stats, nil
}
