package stack

import (
	"context"
	"fmt"
	"io"
	"os"

	"cupola/rootfs/pack"
	"cupola/rootfs/tree"
	"cupola/rootfs/unpack"
)

// Saved is a stack's description in a backup.
type Saved struct {
	Stack
	HasTree bool // an archive of its files is there too
}

// Select returns the stacks that the store does not make itself, and the names of their trees for a lease.
func (s *Stacks) Select() (all []Saved, names []string) {
	for _, st := range s.All() {
		switch st.Kind {
		case KindImage:
		case KindDir:
			names = append(names, st.id)
		default:
			continue
		}
		all = append(all, Saved{st, st.Kind == KindDir})
	}
	return all, names
}

// SaveTree writes the files of a stack as a tar, owned as its containers see them.
func (s *Stacks) SaveTree(ctx context.Context, name string, w io.Writer) error {
	st, ok := s.Get(name)
	if !ok || st.Kind != KindDir {
		return fmt.Errorf("stack %q has no files here", name)
	}
	return pack.Tree(ctx, st.dirs[0], pack.Options{Owner: s.store.IDs.Inside}, w)
}

// Restore makes a stack of what SaveTree wrote, or of an image that is in the cache.
func (s *Stacks) Restore(ctx context.Context, st Saved, lock []byte, tree string) error {
	n := Spec{Name: st.Name, Compat: st.Compat, Description: st.Description, Origin: st.Origin}
	if !st.HasTree {
		_, err := s.AddImage(n, st.Digest)
		return err
	}
	_, err := s.add(ctx, n, func(ctx context.Context, _, dir string) (made, error) {
		return made{digest: st.Digest, lock: lock}, s.restoreTree(ctx, tree, dir)
	})
	return err
}

// restoreTree unpacks an archive. It is trusted no more than any other: it may have no more bytes of files than it has itself.
func (s *Stacks) restoreTree(ctx context.Context, archive, dir string) error {
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
	_, err = unpack.Into(ctx, root, section, unpack.Options{Image: true, Owner: tree.Shifted(s.store.IDs), Limits: unpack.Limits{Entries: -1, Bytes: max(section.Size(), 1)}})
	return err
}
