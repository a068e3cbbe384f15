package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"

	"cupola/rootfs"
	"cupola/rootfs/image"
	"cupola/rootfs/layer"
	"cupola/rootfs/reference"
	"cupola/rootfs/root"
	"cupola/server/bosh/manifest"
	"cupola/server/bosh/release"
)

// Images reads the jobs of release images. Each is pulled and openImage once;
// Close unmounts them all.
type Images struct {
	// Release returns the stack of an uploaded release, and its jobs as layers; nil:
	// there are only release images.
	Release func(context.Context, manifest.Archive) (stack string, jobs []layer.Layer, err error)

	roots *rootfs.Store
	pull  Pull

	mu   sync.Mutex
	open map[string]*openImage // by their references
}

// Pull brings an image into the store and returns a reference that means this
// one for ever.
type Pull func(ctx context.Context, reference string, as manifest.Credentials) (pinned string, err error)

type openImage struct {
	id     string
	pinned string
	layers []layer.Layer // above it
	root   *os.Root
}

// NewImages reads images; a nil pull takes them from their registries as they
// are named.
func (s *Sandbox) NewImages(pull Pull) *Images {
	if pull == nil {
		pull = s.pull
	}
	return &Images{roots: s.cfg.Roots, pull: pull, open: map[string]*openImage{}}
}

// referenceOf is an image of a manifest as a reference.Reference is written.
func referenceOf(image manifest.Image) string {
	if a := image.Archive; a != (manifest.Archive{}) {
		return strings.Join([]string{"release", a.Name, a.Version, a.OS, a.URL, a.Digest}, "\n")
	}
	if image.Local {
		return string(reference.SchemeOCI) + ":" + image.Reference
	}
	return string(reference.SchemeDocker) + "://" + image.Reference
}

// Job reads a job, as bosh.Resolver.Job does.
func (i *Images) Job(ctx context.Context, image manifest.Image, job string) (release.Job, error) {
	img, err := i.image(ctx, image)
	if err != nil {
		return release.Job{}, err
	}
	return release.Read(img.root.FS(), job)
}

// Pinned is a reference of an image by its digest, once a job of it was read; ""
// for another.
func (i *Images) Pinned(image manifest.Image) string {
	i.mu.Lock()
	defer i.mu.Unlock()
	if img := i.open[referenceOf(image)]; img != nil {
		return img.pinned
	}
	return ""
}

// All are the images that were read, pinned: a Ruby may be in one of them.
func (i *Images) All() (all []string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, img := range i.open {
		all = append(all, img.pinned)
	}
	return all
}

// Close unmounts the images.
func (i *Images) Close() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), cleanupTime)
	defer cancel()
	var errs []error
	for ref, img := range i.open {
		errs = append(errs, img.root.Close(), i.roots.Unmount(ctx, img.id))
		delete(i.open, ref)
	}
	return errors.Join(errs...)
}

func (i *Images) image(ctx context.Context, of manifest.Image) (*openImage, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	ref := referenceOf(of)
	if img := i.open[ref]; img != nil {
		return img, nil
	}
	img, err := i.bring(ctx, ref, of)
	if err != nil {
		return nil, err
	}
	root, err := i.roots.Mount(ctx, root.Request{ID: img.id, Stack: img.pinned, Layers: img.layers, DiskBytes: diskBytes, Inodes: inodes})
	if err != nil {
		return nil, err
	}
	if img.root, err = os.OpenRoot(root.Path); err != nil {
		return nil, errors.Join(err, i.roots.Unmount(ctx, img.id))
	}
	i.open[ref] = img
	return img, nil
}

// bring brings an image or an uploaded release's jobs here.
func (i *Images) bring(ctx context.Context, ref string, of manifest.Image) (img *openImage, err error) {
	img = &openImage{id: newID()}
	if of.Archive == (manifest.Archive{}) {
		img.pinned, err = i.pull(ctx, ref, of.Credentials)
		return img, err
	}
	if i.Release == nil {
		return nil, fmt.Errorf("release '%s/%s' is an archive: give the url of release images", of.Archive.Name, of.Archive.Version)
	}
	img.pinned, img.layers, err = i.Release(ctx, of.Archive)
	return img, err
}

func (s *Sandbox) pull(ctx context.Context, ref string, as manifest.Credentials) (string, error) {
	r, err := reference.Parse(ref)
	if err != nil {
		return "", err
	}
	img, err := s.cfg.Roots.Images.Pull(ctx, r, image.PullOptions{Username: as.Username, Password: as.Password, Claim: true})
	if err != nil {
		return "", err
	}
	if r.Scheme == reference.SchemeDocker {
		r.Digest = img.Digest
	}
	if img.Digest == "" {
		return "", fmt.Errorf("image %s has no digest", ref)
	}
	return r.String(), nil
}
