package rootfs

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"cupola/rootfs/reference"
	"cupola/runtime/durable"
)

// Image is a container image in the store.
type Image struct {
	Reference string // it was pulled by, in full
	Digest    string // of what the reference means: of a manifest, or of an index of several platforms'
	Config    ImageConfig
	Layers    []ImageLayer // the lowest first
	Bytes     int64        // of its regular files, unpacked
	Compat    string       // which of CF's stacks it is like: its label, its name, its os-release; "" for none
	Kernel    string       // the oldest Linux that its C library runs on, such as 3.2.0; "" when it does not say
	Libc      string       // the newest symbols of its C library, such as GLIBC_2.36; or musl 1.2.5; "" when it has none
	Arch      string       // as Go calls it
}

// ImageConfig is how an image wants its containers to be.
type ImageConfig struct {
	User         string
	Env          []string // NAME=value
	Entrypoint   []string
	Cmd          []string
	WorkingDir   string
	ExposedPorts []string // such as 8080/tcp, sorted
}

// ImageLayer is one layer of an image.
type ImageLayer struct {
	Digest string // of what is moved
	DiffID string // of the tar
	Bytes  int64  // of what is moved
}

// ErrNotPulled is returned by Mount for an image that the store does not hold, or not as a whole.
var ErrNotPulled = errors.New("image is not in the cache")

// cached is the record of an image, written when all it names is whole and on disk. Its file's time is that of the last
// use.
type cached struct {
	Image
	Repositories []string // host/repository of those it was pulled from: who may use it is their matter
	Origins      []string // references of those, as in Image.Reference
	Chains       []string // directories of its unpacked layers, the lowest first
	Blobs        []string // sha256 in hex of its documents and layers; the first is the platform's manifest
	Pulled       time.Time
}

func (s *Store) recordPath(digest string) string {
	return s.path("images", strings.TrimPrefix(digest, "sha256:")+".json")
}

// cachedImage reads the record of a digest. An image that lacks a layer is none.
func (s *Store) cachedImage(digest string) (cached, error) {
	var c cached
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
		if _, err := os.Stat(s.path("chains", key, markFile)); err != nil {
			return c, fmt.Errorf("%w: a layer is missing", ErrNotPulled)
		}
	}
	return c, nil
}

// allows tells whether the image was pulled from the repository of r.
func (c cached) allows(r reference.Reference) bool { return slices.Contains(c.Repositories, r.Repo()) }

// writeSynced is writeJSON that a crash of the machine does not undo.
func writeSynced(name string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return durable.Write(name, b, 0o600)
}

// touch notes that an image is used now.
func (s *Store) touch(digest string) {
	now := time.Now()
	if err := os.Chtimes(s.recordPath(digest), now, now); err != nil {
		s.log.Warn("use of an image was not noted", "digest", digest, "err", err)
	}
}
