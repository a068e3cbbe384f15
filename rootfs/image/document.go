package image

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"cupola/rootfs/oci"
	"cupola/rootfs/system"
	"cupola/rootfs/tree"
)

// imageDocument is what describes an image on this machine's platform.
type imageDocument struct {
	digest   string // of the manifest
	manifest oci.Manifest
	config   oci.Config
}

// describe reads the image's documents down from its digest.
func (p *pull) describe(ctx context.Context) error {
	digest := p.digest
	for depth := 0; ; depth++ {
		m, err := p.document(ctx, digest)
		if err != nil {
			return err
		}
		if len(m.Manifests) == 0 {
			p.doc.digest, p.doc.manifest = digest, m
			break
		}
		if depth == oci.MaxNesting {
			return errors.New("its indexes are nested too deep")
		}
		d, err := oci.Choose(m.Manifests)
		if err != nil {
			return err
		}
		digest = d.Digest
	}
	return p.configure(ctx)
}

// document reads a manifest or index: from the store, where an interrupted pull may have left it, or from its origin.
func (p *pull) document(ctx context.Context, digest string) (oci.Manifest, error) {
	_, sum, err := oci.BlobFile(digest)
	if err != nil {
		return oci.Manifest{}, err
	}
	p.files = append(p.files, sum)
	p.hold(blobName(sum))
	for _, name := range []string{sum, sum + partSuffix} {
		if text, err := readLimited(p.s.store.Path("oci", name)); err == nil && oci.Digest(text) == digest {
			return oci.ParseManifest(text)
		}
	}
	text, err := p.fetchDocument(ctx, digest)
	if err != nil {
		return oci.Manifest{}, err
	}
	m, err := oci.ParseManifest(text)
	if err != nil {
		return m, fmt.Errorf("manifest %s: %w", digest, err)
	}
	return m, os.WriteFile(p.s.store.Path("oci", sum+partSuffix), text, 0o600)
}

func (p *pull) fetchDocument(ctx context.Context, digest string) (text []byte, err error) {
	for n := range p.connects {
		var from origin
		if from, err = p.origin(ctx, n); err != nil {
			continue
		}
		if text, err = from.Manifest(ctx, digest); err != nil {
			continue
		}
		if got := oci.Digest(text); got != digest {
			err = &damagedError{fmt.Sprintf("manifest %s has the digest %s", digest, got)}
			continue
		}
		return text, nil
	}
	return nil, err
}

// configure reads the image's config, and refuses an image that cannot run here.
func (p *pull) configure(ctx context.Context) error {
	d := p.doc.manifest.Config
	if d.Size > oci.MaxDocument {
		return fmt.Errorf("its config has %d bytes", d.Size)
	}
	_, sum, err := oci.BlobFile(d.Digest)
	if err != nil {
		return err
	}
	p.hold(blobName(sum))
	f, err := p.blob(ctx, d, func(int64) {})
	if err != nil {
		return fmt.Errorf("fetch its config: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.NewSectionReader(f, 0, oci.MaxDocument))
	if err != nil {
		return err
	}
	var total int64
	limit := p.s.store.Limits.Filled().Bytes
	for _, l := range p.doc.manifest.Layers {
		if total += l.Size; limit > 0 && (l.Size > limit || total > limit) {
			return fmt.Errorf("its layers have more than %d bytes", limit)
		}
	}
	p.doc.config, err = oci.ParseConfig(text, len(p.doc.manifest.Layers))
	return err
}

// record is what is known of the image before it is unpacked.
func (p *pull) record() record {
	cfg := p.doc.config.Config
	c := record{Pulled: time.Now().UTC()}
	c.add(p.ref.String(), p.from.Repo(), p.open && p.from == p.ref)
	c.Reference, c.Digest, c.Arch = p.ref.String(), p.digest, runtime.GOARCH
	c.Config = Config{User: cfg.User, Env: cfg.Env, Entrypoint: cfg.Entrypoint, Cmd: cfg.Cmd, WorkingDir: cfg.WorkingDir, ExposedPorts: slices.Sorted(maps.Keys(cfg.ExposedPorts))}
	for n, l := range p.doc.manifest.Layers {
		c.Layers = append(c.Layers, Layer{Digest: l.Digest, DiffID: p.doc.config.RootFS.DiffIDs[n], Bytes: l.Size})
	}
	_, sum, _ := strings.Cut(p.doc.digest, ":")
	c.Blobs = append(c.Blobs, sum)
	for _, name := range p.blobNames() {
		if name != sum {
			c.Blobs = append(c.Blobs, name)
		}
	}
	c.Compat = system.CompatOf(cfg.Labels, []string{p.ref.Repository})
	return c
}

// blobNames are the sha256 of all documents and layers, in hex, once each.
func (p *pull) blobNames() []string {
	all := slices.Clone(p.files)
	for _, d := range append([]oci.Descriptor{p.doc.manifest.Config}, p.doc.manifest.Layers...) {
		_, sum, _ := strings.Cut(d.Digest, ":")
		all = append(all, sum)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// names are the directories and files that the image will need.
func (p *pull) names() []string {
	var names []string
	digest := ""
	for _, id := range p.doc.config.RootFS.DiffIDs {
		digest = chainDigest(digest, id)
		names = append(names, chainKey(digest, p.s.store.IDs))
	}
	names = append(names, chainKey(p.s.topDigest(digest), p.s.store.IDs))
	for _, b := range p.blobNames() {
		names = append(names, blobName(b))
	}
	return names
}

// topDigest names the layer that the cache adds above an image's layers.
func (s *Cache) topDigest(below string) string {
	return chainDigest(below, "cupola:"+tree.Fingerprint(system.Skeleton(system.Shell), s.store.IDs))
}

// blobName is the name of a blob in a lease.
func blobName(sum string) string { return "blob " + sum }

// finishBlob gives a blob that is whole and on disk its name.
func (s *Cache) finishBlob(sum string) error {
	defer s.locks.Lock("blob " + sum)()
	final := s.store.Path("oci", sum)
	err := os.Rename(final+partSuffix, final)
	if errors.Is(err, fs.ErrNotExist) {
		_, err = os.Stat(final)
	}
	return err
}

func readLimited(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, oci.MaxDocument+1))
}
