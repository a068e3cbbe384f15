package image

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"cupola/rootfs/tree"
)

// Info is an image in the cache, for people.
type Info struct {
	Image
	References []string  // all that it was pulled by
	Fallbacks  []string  // where else it can be pulled from
	DiskBytes  int64     // of its files and of its layers as they were moved; images share layers, so sums count these twice
	Pulled     time.Time // first
	Used       time.Time // last pulled or mounted
	Mounted    bool      // by a container
	Stacks     []string  // of the store that are made of it
}

// List lists the images in the cache, the most recently used first.
func (s *Cache) List() (all []Info, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	err = s.store.Collect(func(used func(string) bool) error {
		all, err = s.list(used)
		return err
	})
	return all, err
}

// list is List where s.mu is held.
func (s *Cache) list(used func(string) bool) ([]Info, error) {
	all, err := s.records()
	if err != nil {
		return nil, err
	}
	var infos []Info
	for _, c := range all {
		fallbacks, err := s.fallbacks(c.Origins)
		if err != nil {
			return nil, err
		}
		i := Info{Image: c.Image, References: c.Origins, Fallbacks: fallbacks, DiskBytes: c.Bytes, Pulled: c.Pulled, Used: c.used}
		for _, l := range c.Layers {
			i.DiskBytes += l.Bytes
		}
		i.Mounted = used(c.Chains[len(c.Chains)-1])
		i.Stacks = s.parts.Stacks(c.Digest)
		infos = append(infos, i)
	}
	return infos, nil
}

// Policy says which images GC removes. An image that Keep wants, that a stack is made of, that a container has mounted or that
// was used within Grace stays, whatever the rest says.
type Policy struct {
	Keep      func(digest string) bool // nil keeps none
	Grace     time.Duration            // 0 is 15 minutes: what was pulled may not be named by anything yet
	OlderThan time.Duration            // images that were not used for so long go; 0 keeps them
	MaxBytes  int64                    // the least recently used images go until the others' DiskBytes are at most so many; 0 means no limit
	All       bool                     // every image that may go
	DryRun    bool                     // tell what would go, and remove nothing
}

// Removed is what GC removed.
type Removed struct {
	Images []Info
	Bytes  int64 // of the images' DiskBytes
}

const (
	defaultGrace = 15 * time.Minute
	partialAge   = 7 * 24 * time.Hour // of a blob that no pull has continued to fetch
)

// GC removes images, and the layers that no other image needs. A crash at any moment leaves images whole or gone; the next GC
// removes what else it leaves.
func (s *Cache) GC(ctx context.Context, p Policy) (r Removed, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	err = s.store.Collect(func(used func(string) bool) error {
		all, err := s.list(used)
		if err != nil {
			return err
		}
		var sum int64
		for _, i := range all { // the most recently used first
			if sum += i.DiskBytes; !p.removes(i, sum) {
				continue
			}
			if err := errors.Join(ctx.Err(), s.drop(i, p)); err != nil {
				return err
			}
			sum -= i.DiskBytes
			r.Images, r.Bytes = append(r.Images, i), r.Bytes+i.DiskBytes
		}
		if p.DryRun {
			return nil
		}
		return s.sweep(ctx, used)
	})
	return r, err
}

// Unused lists the images that GC removes by a policy, the least recently used first. The bytes of each are those that its removal
// gives back when the ones before it are removed, too: images share layers.
func (s *Cache) Unused(ctx context.Context, p Policy) (all []tree.Unused, err error) {
	paths := map[string][]string{}
	s.mu.Lock()
	err = s.store.Collect(func(used func(string) bool) error {
		all, paths, err = s.unused(used, p)
		return err
	})
	s.mu.Unlock()
	for n := range all { // without the lock, which containers that start wait for
		if err != nil {
			return nil, err
		}
		all[n].Bytes, err = tree.DiskBytes(ctx, paths[all[n].Name]...)
	}
	return all, err
}

// unused finds what Unused lists, and by digest the paths that only this image and those before it name.
func (s *Cache) unused(used func(string) bool, p Policy) (all []tree.Unused, paths map[string][]string, err error) {
	records, err := s.records()
	if err != nil {
		return nil, nil, err
	}
	infos, err := s.list(used)
	if err != nil {
		return nil, nil, err
	}
	going, sum := map[string]time.Time{}, int64(0)
	for _, i := range infos {
		if sum += i.DiskBytes; p.removes(i, sum) {
			going[i.Digest] = i.Used
			sum -= i.DiskBytes
		}
	}
	paths, named := map[string][]string{}, map[string]bool{}
	name := func(c record) (added []string) {
		for dir, names := range map[string][]string{"chains": c.Chains, "oci": c.Blobs} {
			for _, n := range names {
				if path := s.store.Path(dir, n); !named[path] {
					named[path] = true
					added = append(added, path)
				}
			}
		}
		return added
	}
	for _, c := range records {
		if _, goes := going[c.Digest]; !goes {
			name(c.record)
		}
	}
	for _, c := range records { // the most recently used first, which keeps what it shares for longest
		if at, goes := going[c.Digest]; goes {
			paths[c.Digest] = append(name(c.record), s.recordPath(c.Digest))
			all = append(all, tree.Unused{Name: c.Digest, Used: at})
		}
	}
	slices.Reverse(all)
	return all, paths, nil
}

// drop removes the record of an image that a policy removes.
func (s *Cache) drop(i Info, p Policy) error {
	if p.DryRun {
		return nil
	}
	return s.store.Trash.Put(s.recordPath(i.Digest))
}

// Remove removes an image, and the layers that no other image needs. One that a stack is made of or a container has mounted
// stays, and the error says so.
func (s *Cache) Remove(ctx context.Context, digest string) (r Removed, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	err = s.store.Collect(func(used func(string) bool) error {
		all, err := s.list(used)
		if err != nil {
			return err
		}
		at := slices.IndexFunc(all, func(i Info) bool { return i.Digest == digest })
		if at < 0 {
			return fmt.Errorf("%s: %w", digest, ErrNotPulled)
		}
		i := all[at]
		if err := s.removable(i); err != nil {
			return err
		}
		if err := s.store.Trash.Put(s.recordPath(digest)); err != nil {
			return err
		}
		r = Removed{Images: []Info{i}, Bytes: i.DiskBytes}
		return s.sweep(ctx, used)
	})
	return r, err
}

// removable refuses an image that is in use.
func (s *Cache) removable(i Info) error {
	switch {
	case len(i.Stacks) > 0:
		return fmt.Errorf("image %s is what the stack %s is made of", i.Reference, strings.Join(i.Stacks, ", "))
	case i.Mounted:
		return fmt.Errorf("image %s is used by running containers", i.Reference)
	case time.Since(s.claimed[i.Digest]) < claimTime:
		return fmt.Errorf("image %s was pulled for an app just now", i.Reference)
	}
	return nil
}

// claimTime is the time within which the build of an app names the image that was pulled for it.
const claimTime = time.Minute

// claim notes that an image, if there is one, was pulled for a caller who will name it.
func (s *Cache) claim(img *Image) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for digest, at := range s.claimed {
		if time.Since(at) > claimTime {
			delete(s.claimed, digest)
		}
	}
	if img.Digest != "" {
		s.claimed[img.Digest] = time.Now()
	}
}

// removes reports whether an image goes. sum are the bytes of the images that were used later and stay, and its own.
func (p Policy) removes(i Info, sum int64) bool {
	idle := time.Since(i.Used)
	grace := p.Grace
	if grace == 0 {
		grace = defaultGrace
	}
	if i.Mounted || len(i.Stacks) > 0 || idle < grace || p.Keep != nil && p.Keep(i.Digest) {
		return false
	}
	return p.All || p.OlderThan > 0 && idle > p.OlderThan || p.MaxBytes > 0 && sum > p.MaxBytes
}

// sweep deletes the layers and blobs that no record names and that are not in use, and what the parts above have to sweep.
func (s *Cache) sweep(ctx context.Context, used func(string) bool) error {
	all, err := s.records()
	if err != nil {
		return err
	}
	named := map[string]bool{}
	for _, c := range all {
		for _, key := range c.Chains {
			named[key] = true
		}
		for _, sum := range c.Blobs {
			named[blobName(sum)] = true
		}
	}
	keep := func(name string) bool { return named[name] || used(name) }
	chains := s.store.Sweep(ctx, "chains", func(name string, _ time.Duration) bool {
		return keep(name) || strings.HasPrefix(name, ".") // of a pull under way
	})
	blobs := s.store.Sweep(ctx, "oci", func(name string, age time.Duration) bool {
		if sum, ok := strings.CutSuffix(name, partSuffix); ok {
			return keep(blobName(sum)) || age < partialAge
		}
		return keep(blobName(name))
	})
	return errors.Join(chains, blobs, s.parts.Sweep(ctx))
}
