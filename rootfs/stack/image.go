package stack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"cupola/rootfs/image"
	"cupola/rootfs/reference"
	"cupola/rootfs/tree"
)

// Use finds a stack, or an image in the cache, that a request names: by a stack's name or as reference.Parse reads it. It leases
// its parts, and those with the names of also, until release is called. It pulls an OCI layout that is used for the first time.
func (s *Stacks) Use(ctx context.Context, name string, also ...string) (st Stack, release func(), err error) {
	if !strings.Contains(name, ":") {
		name = string(reference.SchemePreloaded) + ":" + name
	}
	r, err := reference.Parse(name)
	if err != nil {
		return Stack{}, nil, err
	}
	if r.Scheme == reference.SchemeOCI {
		if err := s.images.PullLayout(ctx, r); err != nil {
			return Stack{}, nil, err
		}
	}
	release, err = s.store.Hold(func() ([]string, error) {
		if st, err = s.find(r); err != nil {
			return nil, err
		}
		return append(also, st.parts...), nil
	})
	return st, release, err
}

func (s *Stacks) find(r reference.Reference) (Stack, error) {
	if r.Scheme == reference.SchemePreloaded {
		st, ok := s.Get(r.Name)
		if !ok {
			return st, fmt.Errorf("stack %q is not here", r.Name)
		}
		return st, nil
	}
	c, err := s.images.Use(r)
	if err != nil {
		return Stack{}, err
	}
	return Stack{Name: r.String(), Compat: c.Compat, Kind: KindImage, Origin: c.Reference, Digest: c.Digest, Bytes: c.Bytes, Created: c.Pulled, parts: c.Names, dirs: c.Dirs}, nil
}

// onImage completes a stack that is made of an image in the cache.
func (s *Stacks) onImage(st Stack) (Stack, error) {
	c, err := s.images.Unpacked(st.Digest)
	st.parts, st.dirs = append(st.parts, c.Names...), c.Dirs
	return st, err
}

// AddImage makes a stack of an image in the store. An empty Compat is the image's, or the stack's name.
func (s *Stacks) AddImage(n Spec, digest string) (Stack, error) {
	defer s.locks.Lock("stack " + n.Name)()
	if err := s.checkName(n.Name, false); err != nil {
		return Stack{}, err
	}
	var c image.Unpacked
	release, err := s.store.Hold(func() (names []string, err error) { // until it is known what the stack is made of
		c, err = s.images.Unpacked(digest)
		return c.Names, err
	})
	if err != nil {
		return Stack{}, fmt.Errorf("image %s: %w", digest, err)
	}
	defer release()
	origin := cmp.Or(n.Origin, c.Reference)
	st := Stack{Name: n.Name, Compat: cmp.Or(n.Compat, c.Compat, n.Name), Description: cmp.Or(n.Description, origin), Kind: KindImage,
		Origin: origin, Digest: digest, Bytes: c.Bytes, Created: time.Now().UTC(), Kernel: c.Kernel, Libc: c.Libc, Arch: c.Arch}
	tmp, err := os.MkdirTemp(s.store.Path(Dir), ".new-")
	if err != nil {
		return Stack{}, err
	}
	err = tree.WriteJSONSynced(filepath.Join(tmp, "stack.json"), st)
	if err == nil {
		err = s.putStack(tmp, n.Name)
	}
	if err != nil {
		return Stack{}, errors.Join(err, s.store.Trash.Put(tmp))
	}
	st.id, st.parts, st.dirs = n.Name, append([]string{n.Name}, c.Names...), c.Dirs
	s.register(st)
	st, _ = s.Get(n.Name)
	return st, nil
}
