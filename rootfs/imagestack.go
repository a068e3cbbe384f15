package rootfs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"cupola/rootfs/reference"
)

// parts are the directories that a stack's root is made of.
func (st Stack) parts() []string {
	var parts []string
	if st.id != "" {
		parts = append(parts, st.id)
	}
	return append(parts, st.chains...)
}

func (s *Store) chainDirs(chains []string) []string {
	var dirs []string
	for _, key := range chains {
		dirs = append(dirs, s.path("chains", key, "fs"))
	}
	return dirs
}

// findLocked finds what a request's Stack names.
func (s *Store) findLocked(name string) (Stack, error) {
	if !strings.Contains(name, ":") {
		name = string(reference.SchemePreloaded) + ":" + name
	}
	r, err := reference.Parse(name)
	if err != nil {
		return Stack{}, err
	}
	if r.Scheme == reference.SchemePreloaded {
		st, ok := s.stacks[r.Name]
		if !ok {
			return st, fmt.Errorf("stack %q is not here", r.Name)
		}
		return st, nil
	}
	digest, err := s.digestOf(r)
	if err != nil {
		return Stack{}, fmt.Errorf("%s: %w", r, err)
	}
	c, err := s.cachedImage(digest)
	if err != nil {
		return Stack{}, fmt.Errorf("%s: %w", r, err)
	}
	s.touch(digest)
	return Stack{Name: r.String(), Compat: c.Compat, Kind: KindImage, Origin: c.Reference, Digest: digest, Bytes: c.Bytes, Created: c.Pulled, chains: c.Chains}, nil
}

// digestOf tells which image a reference means without asking anybody. What a layout held when it was brought here is
// meant once the layout is gone.
func (s *Store) digestOf(r reference.Reference) (string, error) {
	if r.Scheme == reference.SchemeDocker && r.Digest == "" {
		return "", fmt.Errorf("%w: it is not named by its digest", ErrNotPulled)
	}
	if r.Scheme == reference.SchemeDocker {
		return r.Digest, nil
	}
	l, digest, err := openLayout(r.Name)
	if l.root != nil {
		l.root.Close()
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return digest, err
	}
	all, lerr := s.cachedImages()
	if lerr != nil {
		return "", lerr
	}
	for _, c := range all {
		if slices.Contains(c.Origins, r.String()) {
			return c.Digest, nil
		}
	}
	return "", err
}

// bringLayout brings an OCI layout into the store the first time that it is used.
func (s *Store) bringLayout(ctx context.Context, name string) error {
	if !strings.HasPrefix(name, string(reference.SchemeOCI)+":") {
		return nil
	}
	r, err := reference.Parse(name)
	if err != nil {
		return err
	}
	digest, err := s.digestOf(r)
	if err != nil {
		return fmt.Errorf("%s: %w", r, err)
	}
	if _, err := s.cachedImage(digest); !errors.Is(err, ErrNotPulled) {
		return err
	}
	_, err = s.Pull(ctx, r, PullOptions{})
	return err
}

// cachedImages reads all records, the one used last first.
func (s *Store) cachedImages() ([]usedImage, error) {
	entries, err := os.ReadDir(s.path("images"))
	if err != nil {
		return nil, err
	}
	var all []usedImage
	for _, e := range entries {
		sum, ok := strings.CutSuffix(e.Name(), ".json")
		info, err := e.Info()
		if !ok || err != nil {
			continue
		}
		c, err := s.cachedImage("sha256:" + sum)
		if errors.Is(err, ErrNotPulled) || err == nil && c.Digest != "sha256:"+sum {
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, usedImage{c, info.ModTime()})
	}
	slices.SortFunc(all, func(a, b usedImage) int { return cmp.Or(b.used.Compare(a.used), cmp.Compare(a.Digest, b.Digest)) })
	return all, nil
}

type usedImage struct {
	cached
	used time.Time
}

// AddImage makes a stack of an image in the store. An empty Compat is the image's, or the stack's name.
func (s *Store) AddImage(n NewStack, digest string) (Stack, error) {
	defer s.locks.lock("stack " + n.Name)()
	if err := s.checkNewStack(n.Name); err != nil {
		return Stack{}, err
	}
	c, err := s.cachedImage(digest)
	if err != nil {
		return Stack{}, fmt.Errorf("image %s: %w", digest, err)
	}
	origin := cmp.Or(n.Origin, c.Reference)
	st := Stack{Name: n.Name, Compat: cmp.Or(n.Compat, c.Compat, n.Name), Description: cmp.Or(n.Description, origin), Kind: KindImage,
		Origin: origin, Digest: digest, Bytes: c.Bytes, Created: time.Now().UTC(), Kernel: c.Kernel, Libc: c.Libc, Arch: c.Arch}
	tmp, err := os.MkdirTemp(s.path("stacks"), ".new-")
	if err != nil {
		return Stack{}, err
	}
	err = writeSynced(filepath.Join(tmp, "stack.json"), st)
	if err == nil {
		err = s.putStack(tmp, n.Name)
	}
	if err != nil {
		return Stack{}, errors.Join(err, s.trash.put(tmp))
	}
	st.id, st.chains = n.Name, c.Chains
	s.register(st)
	st, _ = s.Stack(n.Name)
	return st, nil
}
