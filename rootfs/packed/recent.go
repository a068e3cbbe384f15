package packed

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"sync"
	"time"

	"cupola/rootfs/oci"
	"cupola/rootfs/registry"
	"cupola/rootfs/stack"
)

// recents are the images that were packed a moment ago, by what was asked for. To look at all files of a stack again would take
// most of the time that an instance needs to start.
type recents struct {
	mu  sync.Mutex
	all map[string]recent
}

type recent struct {
	image registry.Image
	until time.Time
}

// Bounds of recents. A stack of this machine's own files may change at any time.
const (
	recentTime = 10 * time.Minute
	maxRecent  = 64
)

// recentKey is the same for requests for the same image.
func recentKey(st stack.Stack, layers []string, r Request) string {
	config, _ := json.Marshal(r.Config) // texts alone
	labels, _ := json.Marshal(r.Labels)
	return strings.Join([]string{st.Name, st.Digest, strings.Join(st.Dirs(), " "), strings.Join(layers, " "), r.Own.Name, string(config), string(labels)}, "\n")
}

// get finds an image, if all of it is still there.
func (r *recents) get(key string, has func(registry.Image) bool) (registry.Image, bool) {
	r.mu.Lock()
	one, ok := r.all[key]
	r.mu.Unlock()
	if !ok || !time.Now().Before(one.until) || !has(one.image) {
		return registry.Image{}, false
	}
	return one.image, true
}

func (r *recents) put(key string, p registry.Image) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all == nil || len(r.all) >= maxRecent {
		r.all = map[string]recent{}
	}
	r.all[key] = recent{p, time.Now().Add(recentTime)}
}

// has reports whether what was packed of an image is still there, and notes its use.
func (s *Images) has(p registry.Image) bool {
	now := time.Now()
	if os.Chtimes(s.recordPath(p.Digest), now, now) != nil {
		return false
	}
	for _, l := range p.Layers {
		_, sum, err := oci.BlobFile(l.Digest)
		if err != nil {
			return false
		}
		if err := os.Chtimes(s.store.Path(Dir, sum), now, now); errors.Is(err, os.ErrNotExist) {
			f, err := s.images.OpenBlob(sum)
			if err != nil {
				return false
			}
			_ = f.Close()
		}
	}
	return true
}
