package rootfs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

// imageDocument is what describes an image on this machine's platform.
type imageDocument struct {
	digest   string // of the manifest
	manifest manifest
	config   imageConfig
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
		if depth == maxNesting {
			return errors.New("its indexes are nested too deep")
		}
		d, err := choose(m.Manifests)
		if err != nil {
			return err
		}
		digest = d.Digest
	}
	return p.configure(ctx)
}

// document reads a manifest or index: from the store, where an interrupted pull may have left it, or from its origin.
func (p *pull) document(ctx context.Context, digest string) (manifest, error) {
	_, sum, err := blobFile(digest)
	if err != nil {
		return manifest{}, err
	}
	p.files = append(p.files, sum)
	p.hold(blobName(sum))
	for _, name := range []string{sum, sum + partSuffix} {
		if text, err := readLimited(p.s.path("oci", name)); err == nil && digestText(text) == digest {
			return parseManifest(text)
		}
	}
	text, err := p.fetchDocument(ctx, digest)
	if err != nil {
		return manifest{}, err
	}
	m, err := parseManifest(text)
	if err != nil {
		return m, fmt.Errorf("manifest %s: %w", digest, err)
	}
	return m, os.WriteFile(p.s.path("oci", sum+partSuffix), text, 0o600)
}

func (p *pull) fetchDocument(ctx context.Context, digest string) (text []byte, err error) {
	for n := range p.connects {
		var from origin
		if from, err = p.origin(ctx, n); err != nil {
			continue
		}
		if text, err = from.manifest(ctx, digest); err != nil {
			continue
		}
		if got := digestText(text); got != digest {
			err = &damagedError{fmt.Sprintf("manifest %s has the digest %s", digest, got)}
			continue
		}
		return text, nil
	}
	return nil, err
}

// parseManifest reads an index or a manifest. One that could be taken for both means something else to others who read it
// (CVE-2021-41190), so it is refused.
func parseManifest(text []byte) (manifest, error) {
	var m manifest
	if err := json.Unmarshal(text, &m); err != nil {
		return m, fmt.Errorf("it does not parse: %v", err)
	}
	isIndex, isImage := len(m.Manifests) > 0, len(m.Layers) > 0 || m.Config.Digest != ""
	saysIndex := strings.HasSuffix(m.MediaType, ".index.v1+json") || strings.HasSuffix(m.MediaType, ".list.v2+json")
	switch {
	case isIndex && isImage, m.MediaType != "" && (isIndex || isImage) && saysIndex != isIndex:
		return m, errors.New("it is both an index and an image")
	case m.MediaType != "" && !slices.Contains(documents, m.MediaType):
		return m, fmt.Errorf("it is of the type %q, which is no container image", m.MediaType)
	case isIndex:
		return m, nil
	case len(m.Layers) == 0:
		return m, errors.New("it has no layers")
	case len(m.Layers) > maxLayers:
		return m, fmt.Errorf("it has %d layers; at most %d can be mounted", len(m.Layers), maxLayers)
	}
	for _, l := range m.Layers {
		if strings.HasSuffix(l.MediaType, "+encrypted") {
			return m, errors.New("its layers are encrypted")
		}
		if _, _, err := blobFile(l.Digest); err != nil {
			return m, err
		}
	}
	return m, nil
}

// choose finds this machine's platform in an index. What says no platform is taken when it is alone; attestations say
// unknown.
func choose(all []descriptor) (descriptor, error) {
	var names []string
	for _, d := range all {
		if d.Platform == nil {
			continue
		}
		if d.Platform.OS == "linux" && d.Platform.Architecture == runtime.GOARCH {
			return d, nil
		}
		if d.Platform.OS != "unknown" {
			names = append(names, d.Platform.OS+"/"+d.Platform.Architecture)
		}
	}
	if len(all) == 1 && all[0].Platform == nil {
		return all[0], nil
	}
	return descriptor{}, fmt.Errorf("there is no image for linux/%s, only for %s", runtime.GOARCH, cmp.Or(strings.Join(names, ", "), "none"))
}

// configure reads the image's config, and refuses an image that cannot run here.
func (p *pull) configure(ctx context.Context) error {
	d := p.doc.manifest.Config
	if d.Size > maxDocument {
		return fmt.Errorf("its config has %d bytes", d.Size)
	}
	_, sum, err := blobFile(d.Digest)
	if err != nil {
		return err
	}
	p.hold(blobName(sum))
	f, err := p.blob(ctx, d, func(int64) {})
	if err != nil {
		return fmt.Errorf("fetch its config: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.NewSectionReader(f, 0, maxDocument))
	if err != nil {
		return err
	}
	var total int64
	limit := p.s.cfg.Limits.Filled().Bytes
	for _, l := range p.doc.manifest.Layers {
		if total += l.Size; limit > 0 && (l.Size > limit || total > limit) {
			return fmt.Errorf("its layers have more than %d bytes", limit)
		}
	}
	p.doc.config, err = parseConfig(text, len(p.doc.manifest.Layers))
	return err
}

// parseConfig reads the config of an image with so many layers.
func parseConfig(text []byte, layers int) (c imageConfig, err error) {
	if err := json.Unmarshal(text, &c); err != nil {
		return c, fmt.Errorf("its config does not parse: %v", err)
	}
	if len(c.RootFS.DiffIDs) != layers {
		return c, fmt.Errorf("it has %d layers but %d diff ids; is it a container image?", layers, len(c.RootFS.DiffIDs))
	}
	for _, id := range c.RootFS.DiffIDs {
		if _, _, err := blobFile(id); err != nil {
			return c, err
		}
	}
	return c, c.runs()
}

// record is what is known of the image before it is unpacked.
func (p *pull) record() cached {
	cfg := p.doc.config.Config
	c := cached{Origins: []string{p.ref.String()}, Repositories: []string{p.from.Repo()}, Pulled: time.Now().UTC()}
	c.Reference, c.Digest, c.Arch = p.ref.String(), p.digest, runtime.GOARCH
	c.Config = ImageConfig{User: cfg.User, Env: cfg.Env, Entrypoint: cfg.Entrypoint, Cmd: cfg.Cmd, WorkingDir: cfg.WorkingDir}
	for port := range cfg.ExposedPorts {
		c.Config.ExposedPorts = append(c.Config.ExposedPorts, port)
	}
	slices.Sort(c.Config.ExposedPorts)
	for n, l := range p.doc.manifest.Layers {
		c.Layers = append(c.Layers, ImageLayer{Digest: l.Digest, DiffID: p.doc.config.RootFS.DiffIDs[n], Bytes: l.Size})
	}
	_, sum, _ := strings.Cut(p.doc.digest, ":")
	c.Blobs = append(c.Blobs, sum)
	for _, name := range p.blobNames() {
		if name != sum {
			c.Blobs = append(c.Blobs, name)
		}
	}
	c.Compat = image{labels: cfg.Labels, names: []string{p.ref.Repository}}.compat()
	return c
}

// blobNames are the sha256 of all documents and layers, in hex, once each.
func (p *pull) blobNames() []string {
	all := slices.Clone(p.files)
	for _, d := range append([]descriptor{p.doc.manifest.Config}, p.doc.manifest.Layers...) {
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
		names = append(names, chainKey(digest, p.s.cfg.IDMap))
	}
	names = append(names, chainKey(p.s.topDigest(digest), p.s.cfg.IDMap))
	for _, b := range p.blobNames() {
		names = append(names, blobName(b))
	}
	return names
}

// topDigest names the layer that Store adds above an image's own.
func (s *Store) topDigest(below string) string {
	return chainDigest(below, "cupola:"+fingerprint(skeleton(minifsShell), s.cfg.IDMap))
}

// blobName is what a blob is called in Store.using.
func blobName(sum string) string { return "blob " + sum }

// holdAll keeps what bears the names until release is called.
func (s *Store) holdAll(names []string) (release func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.holdLocked(names)
}

func (s *Store) holdLocked(names []string) (release func()) {
	for _, name := range names {
		s.using[name]++
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, name := range names {
			if s.using[name]--; s.using[name] == 0 {
				delete(s.using, name)
			}
		}
	}
}

// keepBlob gives a blob that is whole and on disk its name.
func (s *Store) keepBlob(sum string) error {
	defer s.locks.lock("blob " + sum)()
	final := s.path("oci", sum)
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
	return io.ReadAll(io.LimitReader(f, maxDocument+1))
}
