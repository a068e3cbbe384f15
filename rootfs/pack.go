package rootfs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"cupola/rootfs/reference"
)

// PackRequest asks for an image of what a container has for its root.
type PackRequest struct {
	Stack  string  // as in Request
	Layers []Layer // as in Request
	Own    Archive // a layer above those
	Config ImageConfig
	Labels map[string]string
	// Progress may be nil. It takes the bytes of files that were read for a layer and those to read, 0 where that is not known.
	Progress func(what string, done, total int64)
}

// Archive is a tar that somebody writes, always the same.
type Archive struct {
	Name  string // for people
	Write func(io.Writer) error
}

// StackLabel is an image's label with the digest of the stack it was packed with: of an image, or of a tree as a layer.
const StackLabel = "org.cloudfoundry.stack.digest"

// Packed is an image that a store has packed. OpenPacked gives its layers.
type Packed struct {
	Digest           string // of the manifest
	Manifest, Config []byte
	Layers           []PackedLayer // the lowest first
}

// PackedLayer is a layer of a packed image, as it is moved.
type PackedLayer struct {
	Digest, DiffID string
	MediaType      string
	Bytes          int64
	From           []string `json:",omitempty"` // repositories that had it when it was pulled, as host/name
}

// packedRecord says what a packed image was made of.
type packedRecord struct {
	Packed
	Sources []string // digests of the request's layers
}

// packedAge is how long what was packed stays after it was asked for last. It can be packed again at any time.
const packedAge = 24 * time.Hour

// subtree is a directory or file of this machine at a place in a layer.
type subtree struct {
	dir      string
	at       string // relative; "" is the root
	foreign  bool   // the machine's own: what not everybody may read stays out, and nothing is set-id
	timeless bool   // all times are nothing's
}

// Pack makes an image of a stack with layers above it. The same request makes the same image, byte by byte, as long as the stack
// stays what it is; a stack that is an image gives its layers as they were pulled. It stays here for a day after it was asked for.
func (s *Store) Pack(ctx context.Context, r PackRequest) (Packed, error) {
	if !privileged() {
		return Packed{}, errors.New("packing images needs root")
	}
	if r.Progress == nil {
		r.Progress = func(string, int64, int64) {}
	}
	select {
	case s.pack <- struct{}{}:
		defer func() { <-s.pack }()
	case <-ctx.Done():
		return Packed{}, context.Cause(ctx)
	}
	if err := s.bringLayout(ctx, r.Stack); err != nil {
		return Packed{}, err
	}
	st, release, err := s.hold(Request{Stack: r.Stack, Layers: r.Layers})
	if err != nil {
		return Packed{}, err
	}
	defer release()
	p, err := s.packImage(ctx, st, r)
	if err != nil {
		return Packed{}, fmt.Errorf("pack an image on %s: %w", st.Name, err)
	}
	return p, nil
}

func (s *Store) packImage(ctx context.Context, st Stack, r PackRequest) (Packed, error) {
	all, digest, err := s.packStack(ctx, st, r.Progress)
	if err != nil {
		return Packed{}, err
	}
	record := packedRecord{}
	for _, l := range r.Layers {
		if _, err := s.layer(ctx, l); err != nil {
			return Packed{}, err
		}
		packed, err := s.packTrees(ctx, "layer for "+l.Dest, []subtree{{dir: s.path("layers", l.key(s.cfg.IDMap), "fs")}}, r.Progress)
		if err != nil {
			return Packed{}, err
		}
		all, record.Sources = append(all, packed), append(record.Sources, l.Digest)
	}
	own, err := s.packLayer(ctx, r.Own.Name, 0, r.Own.Write, r.Progress)
	if err != nil {
		return Packed{}, err
	}
	if record.Packed, err = r.compose(append(all, own), digest); err != nil {
		return Packed{}, err
	}
	return record.Packed, writeSynced(s.packedRecordPath(record.Digest), record)
}

// packStack gives a stack's layers, and its digest.
func (s *Store) packStack(ctx context.Context, st Stack, progress func(string, int64, int64)) (all []PackedLayer, digest string, err error) {
	if st.Kind != KindImage {
		l, err := s.packTrees(ctx, "stack "+st.Name, st.subtrees(), progress)
		return []PackedLayer{l}, l.Digest, err
	}
	c, err := s.cachedImage(st.Digest)
	if err != nil {
		return nil, "", err
	}
	text, err := readLimited(s.path("oci", c.Blobs[0]))
	if err != nil {
		return nil, "", err
	}
	m, err := parseManifest(text)
	if err != nil {
		return nil, "", err
	}
	for n, l := range c.Layers {
		all = append(all, PackedLayer{Digest: l.Digest, DiffID: l.DiffID, MediaType: ociLayer(m.Layers[n].MediaType), Bytes: l.Bytes, From: c.Repositories})
	}
	top, err := s.packTrees(ctx, "accounts of "+st.Name, []subtree{{dir: s.path("chains", c.Chains[len(c.Chains)-1], "fs"), timeless: true}}, progress)
	return append(all, top), c.Digest, err
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

// subtrees are where a stack's files are, for one that is no image.
func (st Stack) subtrees() []subtree {
	all := []subtree{{dir: st.dir}}
	for _, b := range st.binds {
		all = append(all, subtree{dir: b.Source, at: strings.TrimPrefix(path.Clean(b.Destination), "/"), foreign: true})
	}
	return all
}

// packTrees makes a layer of trees, unless it is here.
func (s *Store) packTrees(ctx context.Context, what string, trees []subtree, progress func(string, int64, int64)) (PackedLayer, error) {
	sum, total, err := fingerprintTrees(ctx, trees, s.cfg.IDMap)
	if err != nil {
		return PackedLayer{}, err
	}
	name := s.path("packed", "tree-"+sum+".json")
	if l, ok := s.packedAlready(name); ok {
		return l, nil
	}
	l, err := s.packLayer(ctx, what, total, func(w io.Writer) error { return packTrees(ctx, trees, s.cfg.IDMap, w) }, progress)
	if err != nil {
		return l, err
	}
	return l, writeSynced(name, l)
}

// packedAlready reads what names a layer that is here, and notes the use of both.
func (s *Store) packedAlready(name string) (l PackedLayer, ok bool) {
	text, err := os.ReadFile(name)
	if err != nil || json.Unmarshal(text, &l) != nil {
		return l, false
	}
	_, sum, err := blobFile(l.Digest)
	if err != nil {
		return l, false
	}
	info, err := os.Stat(s.path("packed", sum))
	if err != nil || info.Size() != l.Bytes {
		return l, false
	}
	now := time.Now()
	return l, errors.Join(os.Chtimes(name, now, now), os.Chtimes(s.path("packed", sum), now, now)) == nil
}

// compose makes the documents of an image of layers.
func (r PackRequest) compose(layers []PackedLayer, stack string) (Packed, error) {
	config := v1.ConfigFile{Architecture: runtime.GOARCH, OS: "linux", Created: v1.Time{Time: time.Unix(0, 0).UTC()}, RootFS: v1.RootFS{Type: "layers"}, Config: v1.Config{
		User: r.Config.User, Env: r.Config.Env, Entrypoint: r.Config.Entrypoint, Cmd: r.Config.Cmd, WorkingDir: r.Config.WorkingDir,
		ExposedPorts: map[string]struct{}{}, Labels: map[string]string{StackLabel: stack}}}
	for _, port := range r.Config.ExposedPorts {
		config.Config.ExposedPorts[port] = struct{}{}
	}
	for name, value := range r.Labels {
		config.Config.Labels[name] = value
	}
	m := v1.Manifest{SchemaVersion: 2, MediaType: types.OCIManifestSchema1}
	for _, l := range layers {
		diffID, err := v1.NewHash(l.DiffID)
		if err != nil {
			return Packed{}, err
		}
		digest, err := v1.NewHash(l.Digest)
		if err != nil {
			return Packed{}, err
		}
		config.RootFS.DiffIDs = append(config.RootFS.DiffIDs, diffID)
		m.Layers = append(m.Layers, v1.Descriptor{MediaType: types.MediaType(l.MediaType), Digest: digest, Size: l.Bytes})
	}
	p := Packed{Layers: layers}
	var err error
	if p.Config, err = json.Marshal(config); err != nil {
		return p, err
	}
	m.Config = v1.Descriptor{MediaType: types.OCIConfigJSON, Size: int64(len(p.Config))}
	if m.Config.Digest, _, err = v1.SHA256(bytes.NewReader(p.Config)); err != nil {
		return p, err
	}
	p.Manifest, err = json.Marshal(m)
	p.Digest = digestText(p.Manifest)
	return p, err
}

func (s *Store) packedRecordPath(digest string) string {
	return s.path("packed", "image-"+strings.TrimPrefix(digest, "sha256:")+".json")
}

// OpenPacked opens a layer of an image that was packed with the layer whose digest is source. Else, and when it was packed too
// long ago, the error is ErrNotPacked.
func (s *Store) OpenPacked(image, source, layer string) (*os.File, error) {
	if !reference.IsDigest(image) {
		return nil, ErrNotPacked
	}
	text, err := os.ReadFile(s.packedRecordPath(image))
	var r packedRecord
	if err != nil || json.Unmarshal(text, &r) != nil || !slices.Contains(r.Sources, source) ||
		!slices.ContainsFunc(r.Layers, func(l PackedLayer) bool { return l.Digest == layer }) {
		return nil, ErrNotPacked
	}
	_, sum, err := blobFile(layer)
	if err != nil {
		return nil, err
	}
	for _, dir := range []string{"packed", "oci"} {
		if f, err := os.Open(s.path(dir, sum)); err == nil {
			return f, nil
		}
	}
	return nil, ErrNotPacked
}

// ErrNotPacked says that the store has no such image, or not any longer.
var ErrNotPacked = errors.New("there is no such image, or it has been taken away since it was packed: pack it again")
