package rootfs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"
)

// ImageInfo is an image in the store, for people.
type ImageInfo struct {
	Image
	References []string  // all that it was pulled by
	Fallbacks  []string  // where else it is to be had
	DiskBytes  int64     // of its files and of its layers as they were moved; images share layers, so sums count these twice
	Pulled     time.Time // first
	Used       time.Time // last pulled or mounted
	Mounted    bool      // by a container
	Stacks     []string  // of the store that are made of it
}

// Images lists the images in the store, the one used last first.
func (s *Store) Images() ([]ImageInfo, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.imagesLocked()
}

func (s *Store) imagesLocked() ([]ImageInfo, error) {
	all, err := s.cachedImages()
	if err != nil {
		return nil, err
	}
	used, err := s.mountedDirs()
	if err != nil {
		return nil, err
	}
	var infos []ImageInfo
	for _, c := range all {
		fallbacks, err := s.fallbacksLocked(c.Origins)
		if err != nil {
			return nil, err
		}
		i := ImageInfo{Image: c.Image, References: c.Origins, Fallbacks: fallbacks, DiskBytes: c.Bytes, Pulled: c.Pulled, Used: c.used}
		for _, l := range c.Layers {
			i.DiskBytes += l.Bytes
		}
		top := c.Chains[len(c.Chains)-1]
		i.Mounted = used[top] || s.using[top] > 0
		for _, st := range s.stacks {
			if st.Kind == KindImage && st.Digest == c.Digest {
				i.Stacks = append(i.Stacks, st.Name)
			}
		}
		infos = append(infos, i)
	}
	return infos, nil
}

// Policy says which images GC takes away. One that Keep wants, a stack is made of, a container has mounted or that was used
// within Grace stays whatever the rest says.
type Policy struct {
	Keep      func(digest string) bool // nil keeps none
	Grace     time.Duration            // 0 is 15 minutes: what was pulled may not be named by anything yet
	OlderThan time.Duration            // images not used for so long go; 0 is no reason to
	MaxBytes  int64                    // the images used longest ago go until the others' DiskBytes are at most so many; 0 is no bound
	All       bool                     // all that may go goes
}

// Removed is what GC took away.
type Removed struct {
	Images []ImageInfo
	Bytes  int64 // of the images' DiskBytes
}

const (
	defaultGrace = 15 * time.Minute
	partialAge   = 7 * 24 * time.Hour // of a blob that nobody went on fetching
)

// GC takes images away, and the layers that none needs any longer. Killed at any moment it leaves images whole or gone; what
// else it leaves goes the next time.
func (s *Store) GC(ctx context.Context, p Policy) (Removed, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var r Removed
	all, err := s.imagesLocked()
	if err != nil {
		return r, err
	}
	var sum int64
	for _, i := range all { // the one used last first
		if sum += i.DiskBytes; !p.takes(i, sum) {
			continue
		}
		if err := errors.Join(ctx.Err(), s.trash.put(s.recordPath(i.Digest))); err != nil {
			return r, err
		}
		sum -= i.DiskBytes
		r.Images, r.Bytes = append(r.Images, i), r.Bytes+i.DiskBytes
	}
	return r, s.sweepLocked(ctx)
}

// RemoveImage takes away an image, and the layers that no other one needs. One that a stack is made of or a container has
// mounted stays, and the error says so.
func (s *Store) RemoveImage(ctx context.Context, digest string) (Removed, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all, err := s.imagesLocked()
	if err != nil {
		return Removed{}, err
	}
	at := slices.IndexFunc(all, func(i ImageInfo) bool { return i.Digest == digest })
	if at < 0 {
		return Removed{}, fmt.Errorf("%s: %w", digest, ErrNotPulled)
	}
	i := all[at]
	switch {
	case len(i.Stacks) > 0:
		return Removed{}, fmt.Errorf("image %s is what the stack %s is made of", i.Reference, strings.Join(i.Stacks, ", "))
	case i.Mounted:
		return Removed{}, fmt.Errorf("image %s is used by running containers", i.Reference)
	case time.Since(s.claimed[digest]) < claimTime:
		return Removed{}, fmt.Errorf("image %s was pulled for an app just now", i.Reference)
	}
	if err := s.trash.put(s.recordPath(digest)); err != nil {
		return Removed{}, err
	}
	return Removed{Images: []ImageInfo{i}, Bytes: i.DiskBytes}, s.sweepLocked(ctx)
}

// claimTime is within what an image that was pulled for an app is named by its build.
const claimTime = time.Minute

// claimImage notes that an image, if there is one, was pulled for somebody who will name it.
func (s *Store) claimImage(img *Image) {
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

// takes tells whether an image goes. sum are the bytes of those used later that stay, and its own.
func (p Policy) takes(i ImageInfo, sum int64) bool {
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

// sweepLocked deletes the layers and blobs that no record names, no container has mounted and no pull is at, and what was packed
// a while ago.
func (s *Store) sweepLocked(ctx context.Context) error {
	all, err := s.cachedImages()
	if err != nil {
		return err
	}
	keep, err := s.mountedDirs()
	if err != nil {
		return err
	}
	for name := range s.using {
		keep[name] = true
	}
	for _, c := range all {
		for _, key := range c.Chains {
			keep[key] = true
		}
		for _, sum := range c.Blobs {
			keep[blobName(sum)] = true
		}
	}
	chains := s.sweepDir(ctx, "chains", func(name string, _ time.Duration) bool {
		return keep[name] || strings.HasPrefix(name, ".") // of a pull under way
	})
	blobs := s.sweepDir(ctx, "oci", func(name string, age time.Duration) bool {
		if sum, ok := strings.CutSuffix(name, partSuffix); ok {
			return keep[blobName(sum)] || age < partialAge
		}
		return keep[blobName(name)]
	})
	packed := s.sweepDir(ctx, "packed", func(name string, age time.Duration) bool { return age < packedAge })
	return errors.Join(chains, blobs, packed)
}

func (s *Store) sweepDir(ctx context.Context, dir string, keep func(name string, age time.Duration) bool) error {
	entries, err := os.ReadDir(s.path(dir))
	if err != nil {
		return err
	}
	for _, e := range entries {
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil || ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
		if keep(e.Name(), time.Since(info.ModTime())) {
			continue
		}
		if err := s.trash.put(s.path(dir, e.Name())); err != nil {
			return err
		}
	}
	return nil
}
