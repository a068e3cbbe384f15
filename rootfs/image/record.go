package image

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"cupola/rootfs/reference"
	"cupola/rootfs/tree"
)

// Image is a container image in the store.
type Image struct {
	Reference string // it was pulled by, in full
	Digest    string // of what the reference means: of a manifest, or of an index of several platforms'
	Config    Config
	Layers    []Layer // the lowest first
	Bytes     int64   // of its regular files, unpacked
	Compat    string  // which of CF's stacks it is like: its label, its name, its os-release; "" for none
	Kernel    string  // the oldest Linux that its C library runs on, such as 3.2.0; "" when it does not say
	Libc      string  // the newest symbols of its C library, such as GLIBC_2.36; or musl 1.2.5; "" when it has none
	Arch      string  // as Go calls it
}

// Config is how an image wants its containers to be.
type Config struct {
	User         string
	Env          []string // NAME=value
	Entrypoint   []string
	Cmd          []string
	WorkingDir   string
	ExposedPorts []string // such as 8080/tcp, sorted
}

// Layer is one layer of an image.
type Layer struct {
	Digest string // of what is moved
	DiffID string // of the tar
	Bytes  int64  // of what is moved
}

// ErrNotPulled says that an image is not in the cache, or not as a whole.
var ErrNotPulled = errors.New("image is not in the cache")

// record says what an image is made of. It is written when all of that is whole and on disk. The time of its file is the time
// of the last use.
type record struct {
	Image
	Repositories []string // host/repository of those it was pulled from: they decide who may use it
	Open         []string // those of Repositories that give it without credentials
	Origins      []string // references of those, as in Image.Reference
	Chains       []string // directories of its unpacked layers, the lowest first
	Blobs        []string // sha256 in hex of its documents and layers; the first is the platform's manifest
	Pulled       time.Time
}

func (s *Cache) recordPath(digest string) string {
	return s.store.Path("images", strings.TrimPrefix(digest, "sha256:")+".json")
}

// record reads the record of a digest. An image that lacks a layer is not in the cache.
func (s *Cache) record(digest string) (record, error) {
	var c record
	if !reference.IsDigest(digest) {
		return c, fmt.Errorf("digest %q is not sha256: and 64 lower-case hex digits", digest)
	}
	b, err := os.ReadFile(s.recordPath(digest))
	if errors.Is(err, fs.ErrNotExist) {
		return c, ErrNotPulled
	}
	if err != nil {
		return c, err
	}
	if err := json.Unmarshal(b, &c); err != nil {
		return c, fmt.Errorf("%w: its record does not read: %v", ErrNotPulled, err)
	}
	for _, key := range c.Chains {
		if _, err := os.Stat(s.store.Path("chains", key, tree.MarkFile)); err != nil {
			return c, fmt.Errorf("%w: a layer is missing", ErrNotPulled)
		}
	}
	return c, nil
}

// allows reports whether the image was pulled from the repository of r.
func (c record) allows(r reference.Reference) bool { return slices.Contains(c.Repositories, r.Repo()) }

// add notes where the image was had of, and by which reference. It reports whether that is news.
func (c *record) add(reference, repository string, open bool) (news bool) {
	note := func(list *[]string, s string) {
		if !slices.Contains(*list, s) {
			*list, news = append(*list, s), true
		}
	}
	note(&c.Origins, reference)
	note(&c.Repositories, repository)
	if open {
		note(&c.Open, repository)
	}
	return news
}

// touch notes that an image is used now.
func (s *Cache) touch(digest string) {
	now := time.Now()
	if err := os.Chtimes(s.recordPath(digest), now, now); err != nil {
		s.store.Log.Warn("use of an image was not noted", "digest", digest, "err", err)
	}
}

// records reads all records, the most recently used first.
func (s *Cache) records() ([]usedImage, error) {
	entries, err := os.ReadDir(s.store.Path("images"))
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
		c, err := s.record("sha256:" + sum)
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
	record
	used time.Time
}
