// Package packed makes images of what containers have for their roots: of a stack with layers above it, as docker commit does. It
// keeps them for a day, to be pushed to a registry.
package packed

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"cupola/rootfs/image"
	"cupola/rootfs/internal/store"
	"cupola/rootfs/layer"
	"cupola/rootfs/oci"
	"cupola/rootfs/pack"
	"cupola/rootfs/reference"
	"cupola/rootfs/registry"
	"cupola/rootfs/stack"
	"cupola/rootfs/tree"
)

// Request asks for an image of what a container has for its root.
type Request struct {
	Stack  string        // as in root.Request
	Layers []layer.Layer // as in root.Request
	Own    Archive       // a layer above those
	Config image.Config
	Labels map[string]string
	// Progress may be nil. It takes the bytes of files that were read for a layer and those to read, 0 where that is not known.
	Progress func(what string, done, total int64)
}

// Archive is a tar whose writer writes the same bytes each time.
type Archive struct {
	Name  string // for people
	Write func(io.Writer) error
}

// stackLabel is an image's label with the digest of the stack it was packed with: of an image, or of a tree as a layer.
const stackLabel = "org.cloudfoundry.stack.digest"

// Dir is the directory that packed images have in a store.
const Dir = "packed"

// Images are the packed images of a store. Their methods may be called at the same time.
type Images struct {
	store  *store.Store
	images *image.Cache
	stacks *stack.Stacks
	layers *layer.Cache
	slot   chan struct{} // holds one while a pack is under way: it takes all of a disk and a processor
	recent recents
}

// New opens the packed images of a store, and removes what a crash left half packed.
func New(s *store.Store, images *image.Cache, stacks *stack.Stacks, layers *layer.Cache) (*Images, error) {
	p := &Images{store: s, images: images, stacks: stacks, layers: layers, slot: make(chan struct{}, 1)}
	return p, p.removePartial()
}

// record says what a packed image was made of.
type record struct {
	registry.Image
	Sources []string // digests of the request's layers
}

// maxAge is how long what was packed stays after the last request for it. It can be packed again at any time.
const maxAge = 24 * time.Hour

// Pack makes an image of a stack with layers above it. The same request makes the same image, byte by byte, as long as the stack
// stays what it is; a stack that is an image gives its layers as they were pulled. It stays for a day after the last request for it.
func (s *Images) Pack(ctx context.Context, r Request) (registry.Image, error) {
	if !tree.Privileged() {
		return registry.Image{}, errors.New("packing images needs root")
	}
	if r.Progress == nil {
		r.Progress = func(string, int64, int64) {}
	}
	keys, err := s.layers.Keys(r.Layers)
	if err != nil {
		return registry.Image{}, err
	}
	st, release, err := s.stacks.Use(ctx, r.Stack, keys...)
	if err != nil {
		return registry.Image{}, err
	}
	defer release()
	p, err := s.packOnce(ctx, st, recentKey(st, keys, r), r)
	if err != nil {
		return registry.Image{}, fmt.Errorf("pack an image on %s: %w", st.Name, err)
	}
	return p, nil
}

// packOnce packs an image unless it was a moment ago. What was does not wait for others that are packed.
func (s *Images) packOnce(ctx context.Context, st stack.Stack, key string, r Request) (registry.Image, error) {
	if p, ok := s.recent.get(key, s.has); ok {
		return p, nil
	}
	select {
	case s.slot <- struct{}{}:
		defer func() { <-s.slot }()
	case <-ctx.Done():
		return registry.Image{}, context.Cause(ctx)
	}
	if p, ok := s.recent.get(key, s.has); ok {
		return p, nil
	}
	p, err := s.packImage(ctx, st, r)
	if err == nil {
		s.recent.put(key, p)
	}
	return p, err
}

func (s *Images) packImage(ctx context.Context, st stack.Stack, r Request) (registry.Image, error) {
	all, digest, err := s.packStack(ctx, st, r.Progress)
	if err != nil {
		return registry.Image{}, err
	}
	rec := record{}
	for _, l := range r.Layers {
		if _, err := s.layers.Unpack(ctx, l); err != nil {
			return registry.Image{}, err
		}
		packed, err := s.packTrees(ctx, "layer for "+l.Dest, []pack.Subtree{{Dir: s.store.Path(s.layers.Tree(l))}}, r.Progress)
		if err != nil {
			return registry.Image{}, err
		}
		all, rec.Sources = append(all, packed), append(rec.Sources, l.Digest)
	}
	own, err := s.packLayer(ctx, r.Own.Name, 0, r.Own.Write, r.Progress)
	if err != nil {
		return registry.Image{}, err
	}
	if rec.Image, err = r.compose(append(all, own), digest); err != nil {
		return registry.Image{}, err
	}
	return rec.Image, tree.WriteJSONSynced(s.recordPath(rec.Digest), rec)
}

// packStack gives a stack's layers, and its digest.
func (s *Images) packStack(ctx context.Context, st stack.Stack, progress func(string, int64, int64)) (all []registry.Layer, digest string, err error) {
	if st.Kind != stack.KindImage {
		l, err := s.packTrees(ctx, "stack "+st.Name, st.Trees(), progress)
		return []registry.Layer{l}, l.Digest, err
	}
	if all, err = s.images.Layers(st.Digest); err != nil {
		return nil, "", err
	}
	for n := range all {
		all[n].MediaType = ociLayer(all[n].MediaType)
	}
	dirs := st.Dirs()
	top, err := s.packTrees(ctx, "accounts of "+st.Name, []pack.Subtree{{Dir: dirs[len(dirs)-1], Timeless: true}}, progress)
	return append(all, top), st.Digest, err
}

// ociLayer is OCI's name for docker's type of a layer: the bytes are the same.
func ociLayer(mediaType string) string {
	switch mediaType {
	case "", string(types.DockerLayer):
		return string(types.OCILayer)
	case string(types.DockerUncompressedLayer):
		return string(types.OCIUncompressedLayer)
	case "application/vnd.docker.image.rootfs.diff.tar.zstd":
		return string(types.OCILayerZStd)
	}
	return mediaType
}

// packTrees makes a layer of trees, unless it is here.
func (s *Images) packTrees(ctx context.Context, what string, trees []pack.Subtree, progress func(string, int64, int64)) (registry.Layer, error) {
	sum, total, err := pack.Fingerprint(ctx, trees, s.options())
	if err != nil {
		return registry.Layer{}, err
	}
	name := s.store.Path(Dir, "tree-"+sum+".json")
	if l, ok := s.find(name); ok {
		return l, nil
	}
	l, err := s.packLayer(ctx, what, total, func(w io.Writer) error { return pack.Trees(ctx, trees, s.options(), w) }, progress)
	if err != nil {
		return l, err
	}
	return l, tree.WriteJSONSynced(name, l)
}

// find reads the file that names a layer, and notes the use of both.
func (s *Images) find(name string) (l registry.Layer, ok bool) {
	text, err := os.ReadFile(name)
	if err != nil || json.Unmarshal(text, &l) != nil {
		return l, false
	}
	_, sum, err := oci.BlobFile(l.Digest)
	if err != nil {
		return l, false
	}
	info, err := os.Stat(s.store.Path(Dir, sum))
	if err != nil || info.Size() != l.Bytes {
		return l, false
	}
	now := time.Now()
	return l, errors.Join(os.Chtimes(name, now, now), os.Chtimes(s.store.Path(Dir, sum), now, now)) == nil
}

// options are those of layers: the same bytes for the same files.
func (s *Images) options() pack.Options { return pack.Options{Owner: s.store.IDs.Inside, Layer: true} }

// compose makes the documents of an image of layers.
func (r Request) compose(layers []registry.Layer, stack string) (registry.Image, error) {
	config := v1.ConfigFile{Architecture: runtime.GOARCH, OS: "linux", Created: v1.Time{Time: time.Unix(0, 0).UTC()}, RootFS: v1.RootFS{Type: "layers"}, Config: v1.Config{
		User: r.Config.User, Env: r.Config.Env, Entrypoint: r.Config.Entrypoint, Cmd: r.Config.Cmd, WorkingDir: r.Config.WorkingDir,
		ExposedPorts: map[string]struct{}{}, Labels: map[string]string{stackLabel: stack}}}
	for _, port := range r.Config.ExposedPorts {
		config.Config.ExposedPorts[port] = struct{}{}
	}
	maps.Copy(config.Config.Labels, r.Labels)
	m := v1.Manifest{SchemaVersion: 2, MediaType: types.OCIManifestSchema1}
	for _, l := range layers {
		diffID, err := v1.NewHash(l.DiffID)
		if err != nil {
			return registry.Image{}, err
		}
		digest, err := v1.NewHash(l.Digest)
		if err != nil {
			return registry.Image{}, err
		}
		config.RootFS.DiffIDs = append(config.RootFS.DiffIDs, diffID)
		m.Layers = append(m.Layers, v1.Descriptor{MediaType: types.MediaType(l.MediaType), Digest: digest, Size: l.Bytes})
	}
	p := registry.Image{Layers: layers}
	var err error
	if p.Config, err = json.Marshal(config); err != nil {
		return p, err
	}
	m.Config = v1.Descriptor{MediaType: types.OCIConfigJSON, Size: int64(len(p.Config))}
	if m.Config.Digest, _, err = v1.SHA256(bytes.NewReader(p.Config)); err != nil {
		return p, err
	}
	p.Manifest, err = json.Marshal(m)
	p.Digest = oci.Digest(p.Manifest)
	return p, err
}

func (s *Images) recordPath(digest string) string {
	return s.store.Path(Dir, "image-"+strings.TrimPrefix(digest, "sha256:")+".json")
}

// Open opens a layer of an image that was packed with the layer whose digest is source. Otherwise, and when it was packed too long
// ago, the error is ErrNotFound.
func (s *Images) Open(image, source, layer string) (*os.File, error) {
	r, err := s.record(image)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(r.Sources, source) {
		return nil, ErrNotFound
	}
	return s.openLayer(r, layer)
}

// Image is what was packed under a digest, or ErrNotFound.
func (s *Images) Image(digest string) (registry.Image, error) {
	r, err := s.record(digest)
	return r.Image, err
}

// OpenLayer opens a layer of what was packed under a digest. The error is as Open's.
func (s *Images) OpenLayer(image, layer string) (*os.File, error) {
	r, err := s.record(image)
	if err != nil {
		return nil, err
	}
	return s.openLayer(r, layer)
}

func (s *Images) record(image string) (r record, err error) {
	if !reference.IsDigest(image) {
		return r, ErrNotFound
	}
	text, err := os.ReadFile(s.recordPath(image))
	if err != nil || json.Unmarshal(text, &r) != nil {
		return record{}, ErrNotFound
	}
	return r, nil
}

func (s *Images) openLayer(of record, layer string) (*os.File, error) {
	if !slices.ContainsFunc(of.Layers, func(l registry.Layer) bool { return l.Digest == layer }) {
		return nil, ErrNotFound
	}
	_, sum, err := oci.BlobFile(layer)
	if err != nil {
		return nil, err
	}
	if f, err := os.Open(s.store.Path(Dir, sum)); err == nil {
		return f, nil
	}
	if f, err := s.images.OpenBlob(sum); err == nil {
		return f, nil
	}
	return nil, ErrNotFound
}

// ErrNotFound says that the store has no such image, or has it no longer.
var ErrNotFound = errors.New("there is no such image, or it has been taken away since it was packed: pack it again")

// Sweep deletes what was packed a while ago.
func (s *Images) Sweep(ctx context.Context) error {
	return s.store.Sweep(ctx, Dir, func(_ string, age time.Duration) bool { return age < maxAge })
}

// leastAge is how long what was packed stays in any case: a client may fetch it now.
const leastAge = time.Hour

// Unused lists the files that were not used in the last hour.
func (s *Images) Unused(ctx context.Context) ([]tree.Unused, error) {
	return tree.List(ctx, s.store.Path(Dir), func(_ string, used time.Time) bool { return time.Since(used) < leastAge })
}

// Remove deletes files by their names, except for those that somebody asked for by now.
func (s *Images) Remove(ctx context.Context, names []string) error {
	return s.store.Sweep(ctx, Dir, func(name string, age time.Duration) bool { return age < leastAge || !slices.Contains(names, name) })
}
