package rootfs

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

	"cupola/rootfs/unpack"
)

// A chain is a layer of an image above all those below it: the same tar above other ones makes other files, where it
// writes through their links or removes what they have. So a layer is unpacked through an overlay of those below, and
// what it changed is kept in a directory that containers' overlays can have for a lower one.

// chainKey names a chain's directory. Overlay's options have room for 4 KiB of names, so it is short; the mark in the
// directory has the chain's full digest.
func chainKey(digest string, ids IDMap) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d %d", digest, ids.Base, ids.Size))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:])[:20])
}

// chainDigest is OCI's ChainID: of a layer with the given diffID above the chain below, "" for none.
func chainDigest(below, diffID string) string {
	if below == "" {
		return diffID
	}
	return digestText([]byte(below + " " + diffID))
}

// chain makes sure that a chain is unpacked. fill writes its layer into the root that the chains below show, the lowest
// first.
func (s *Store) chain(digest string, below []string, fill func(root *os.File, m *mark) error) (mark, error) {
	key := chainKey(digest, s.cfg.IDMap)
	defer s.locks.lock("chain " + key)()
	final := s.path("chains", key)
	if m, err := readMark(final); err == nil && m.whole() {
		if m.Digest != digest {
			return mark{}, fmt.Errorf("layers %s and %s have the same name here", digest, m.Digest)
		}
		return m, nil
	}
	if err := s.trash.put(final); err != nil {
		return mark{}, err
	}
	tmp, err := os.MkdirTemp(s.path("chains"), ".new-")
	if err != nil {
		return mark{}, err
	}
	m := newMark()
	m.Digest = digest
	err = s.fillChain(tmp, below, func(root *os.File) error { return fill(root, &m) })
	if err == nil {
		err = writeMark(tmp, m)
	}
	if err == nil {
		err = os.Rename(tmp, final)
	}
	if err != nil {
		return mark{}, errors.Join(err, s.trash.put(tmp))
	}
	return m, nil
}

// fillChain calls fill with the root of a new tree above the chains below.
func (s *Store) fillChain(tmp string, below []string, fill func(root *os.File) error) error {
	tree := filepath.Join(tmp, "fs")
	if err := writeTree(tree, nil, s.cfg.IDMap); err != nil {
		return err
	}
	if len(below) == 0 {
		root, err := os.Open(tree)
		if err != nil {
			return err
		}
		defer root.Close()
		return fill(root)
	}
	if err := copyRoot(tree, s.path("chains", below[len(below)-1], "fs")); err != nil {
		return err
	}
	work, point := filepath.Join(tmp, "work"), filepath.Join(tmp, "root")
	for _, dir := range []string{work, point} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return err
		}
	}
	o := overlay{base: s.path("chains"), point: point, upper: tree, work: work}
	for _, key := range slices.Backward(below) {
		o.lowers = append(o.lowers, filepath.Join(key, "fs"))
	}
	if err := o.throwaway(s.path("run"), fill); err != nil {
		return err
	}
	return errors.Join(s.trash.put(work), os.Remove(point))
}

// unpackLayer writes one layer of an image into the root of those below, and sees that it is what the image says.
func (s *Store) unpackImageLayer(ctx context.Context, root, archive *os.File, diffID string, o unpack.Options) (unpack.Stats, error) {
	section, err := unpack.Section(archive)
	if err != nil {
		return unpack.Stats{}, err
	}
	sum := sha256.New()
	o.Image, o.Owner, o.Plain = true, s.shift(), sum
	stats, err := unpack.Into(ctx, root, section, o)
	if err != nil {
		return stats, err
	}
	if got := fmt.Sprintf("sha256:%x", sum.Sum(nil)); got != diffID {
		return stats, &damagedError{fmt.Sprintf("it unpacks to %s, not to the %s that the image says", got, diffID)}
	}
	return stats, nil
}

// dropHalfChains removes what a crash left half unpacked, or unsynced when the machine went down.
func (s *Store) dropHalfChains() error {
	entries, err := os.ReadDir(s.path("chains"))
	if err != nil {
		return err
	}
	for _, e := range entries {
		dir := s.path("chains", e.Name())
		if m, err := readMark(dir); err == nil && m.whole() && !strings.HasPrefix(e.Name(), ".") {
			continue
		}
		if err := s.trash.put(dir); err != nil {
			return err
		}
	}
	return nil
}
