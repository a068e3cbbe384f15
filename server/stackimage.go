package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"cupola/rootfs/image"
	"cupola/rootfs/reference"
	"cupola/rootfs/stack"
	"cupola/rootfs/system"
	"cupola/store"
	"cupola/store/cf"
)

// StackPull asks for an image of a registry or an OCI layout.
type StackPull struct {
	Reference          string         // as reference.Parse reads it; docker:// may be left out
	Name, Compat       string         // of a stack that is to be made of it; "" makes none, or guesses
	Username, Password string         // of the reference's registry
	Credentials        cf.Credentials // of this and other registries
	// Fallbacks are references that have the same image, asked when the first does not give it, now and whenever it is
	// pulled again. Nil leaves those there are; an empty slice forgets them.
	Fallbacks []string
}

// StackExport asks for a copy of an image as an OCI layout.
type StackExport struct {
	Name string // as for rootfs.Store.FindImage
	Path string // absolute; nothing is there yet
}

// StackGC says which images are to go of those that nothing needs.
type StackGC struct {
	OlderThan time.Duration // not used for so long
	MaxBytes  int64         // the images used longest ago go until the others have at most so many bytes
	All       bool
}

// ImageInfo is an image in the cache as operators see it.
type ImageInfo struct {
	image.Info
	Pinned  bool   // an app, a build or what is of the BBS names it
	Warning string `json:",omitempty"` // what to expect of it on this machine
}

// Images lists the images, the one used last first.
func (l localStacks) Images(ctx context.Context) ([]ImageInfo, error) {
	pinned, err := l.pinned(ctx)
	if err != nil {
		return nil, err
	}
	all, err := l.roots.Images.List()
	if err != nil {
		return nil, err
	}
	infos := []ImageInfo{}
	for _, i := range all {
		infos = append(infos, ImageInfo{i, pinned[i.Digest], system.KernelWarning(i.Kernel)})
	}
	return infos, nil
}

// Image finds an image by its digest, a reference it was pulled by, or the name
// of a stack that is made of it.
func (l localStacks) Image(ctx context.Context, name string) (ImageInfo, error) {
	asked := name
	if _, ok := l.roots.Stacks.Get(name); !ok {
		name = withScheme(name)
	}
	i, err := l.roots.Images.Find(name)
	if errors.Is(err, image.ErrNotPulled) {
		return ImageInfo{}, errNothingCalled(asked)
	}
	if err != nil {
		return ImageInfo{}, err
	}
	pinned, err := l.pinned(ctx)
	return ImageInfo{i, pinned[i.Digest], system.KernelWarning(i.Kernel)}, err
}

func errNothingCalled(name string) error {
	return fmt.Errorf("no stack and no image is called %s: 'cupola stack list' names them", name)
}

// pinned are the digests of the images that apps, or what is of the BBS, run on or may run on again.
func (l localStacks) pinned(ctx context.Context) (map[string]bool, error) {
	pinned := map[string]bool{}
	return pinned, l.store.Read(ctx, func(tx *store.Tx) error {
		named, err := tx.NamedImages()
		for _, name := range named {
			r, err := reference.Parse(name)
			if err != nil {
				return err
			}
			pinned[r.Digest] = true
		}
		if err != nil {
			return err
		}
		return l.pinByBBS(tx, pinned)
	})
}

// Pull takes an image into the cache and, if it is to have a name, makes a stack of it.
func (l localStacks) Pull(ctx context.Context, p StackPull, progress func(StackStep)) (StackInfo, error) {
	ref, err := reference.Parse(withScheme(p.Reference))
	if err != nil {
		return StackInfo{}, err
	}
	o, err := p.options(ref, progress)
	if err != nil {
		return StackInfo{}, err
	}
	o.Trusted = true
	img, err := l.roots.Images.Pull(ctx, ref, o)
	if err != nil {
		return StackInfo{}, err
	}
	if w := system.KernelWarning(img.Kernel); w != "" {
		o.Warn(w)
	}
	if p.Name == "" {
		return StackInfo{Stack: imageStack(ref, img)}, nil
	}
	s, err := l.roots.Stacks.AddImage(stack.Spec{Name: p.Name, Compat: p.Compat, Origin: ref.String()}, img.Digest)
	if err != nil {
		return StackInfo{}, err
	}
	return l.info(s), l.offer(ctx)
}

func (p StackPull) options(ref reference.Reference, progress func(StackStep)) (image.PullOptions, error) {
	var mu sync.Mutex // warnings come beside layers
	tell := func(s StackStep) {
		mu.Lock()
		defer mu.Unlock()
		progress(s)
	}
	o := pullOptions(ref, p.Credentials, func(s image.LayerProgress) {
		tell(StackStep{Step: "layer", Detail: fmt.Sprintf("%d of %d %s", s.Index+1, s.Layers, s.Phase), Done: s.Done, Total: s.Total})
	}, func(w string) { tell(StackStep{Step: "warning", Detail: w}) })
	if p.Username != "" || p.Password != "" {
		o.Username, o.Password = p.Username, p.Password
	}
	if p.Fallbacks != nil {
		o.Fallbacks = []reference.Reference{}
	}
	for _, text := range p.Fallbacks {
		r, err := reference.Parse(withScheme(text))
		if err != nil {
			return o, err
		}
		o.Fallbacks = append(o.Fallbacks, r)
	}
	return o, nil
}

// withScheme completes an image's reference that is written as docker has it.
func withScheme(name string) string {
	for _, known := range []string{"docker:", "oci:", "preloaded:", "precached:", "sha256:"} {
		if strings.HasPrefix(name, known) {
			return name
		}
	}
	return "docker://" + name
}

// imageStack is an image without a name as a stack.
func imageStack(ref reference.Reference, img image.Image) stack.Stack {
	return stack.Stack{Name: ref.String(), Compat: cmp.Or(img.Compat, ref.String()), Kind: stack.KindImage, Origin: ref.String(), Digest: img.Digest, Bytes: img.Bytes}
}

// Export writes an image as an OCI layout.
func (l localStacks) Export(ctx context.Context, x StackExport, progress func(StackStep)) (StackInfo, error) {
	if !filepath.IsAbs(x.Path) {
		return StackInfo{}, fmt.Errorf("export to %s: the path is not absolute", x.Path)
	}
	i, err := l.Image(ctx, x.Name)
	if err != nil {
		return StackInfo{}, err
	}
	img, err := l.roots.Images.Export(ctx, i.Digest, x.Path, func(done, total int64) {
		progress(StackStep{Step: "export", Detail: filepath.Base(x.Path), Done: done, Total: total})
	})
	if err != nil {
		return StackInfo{}, err
	}
	ref, err := reference.Parse(img.Reference)
	return StackInfo{Stack: imageStack(ref, img)}, err
}

// GC takes images away that nothing needs: no app, stack or container, and none used in the last minutes.
func (l localStacks) GC(ctx context.Context, g StackGC) (image.Removed, error) {
	if g.OlderThan <= 0 && g.MaxBytes <= 0 && !g.All {
		return image.Removed{}, errors.New("say which images are to go")
	}
	l.gcMu.Lock()
	defer l.gcMu.Unlock()
	pinned, err := l.pinned(ctx)
	if err != nil {
		return image.Removed{}, err
	}
	return l.roots.Images.GC(ctx, image.Policy{Keep: func(digest string) bool { return pinned[digest] }, OlderThan: g.OlderThan, MaxBytes: g.MaxBytes, All: g.All})
}

// Images asks for the images.
func (c control) Images(ctx context.Context) (all []ImageInfo, err error) {
	return all, c.get(ctx, "/images", &all)
}

// Image asks for an image.
func (c control) Image(ctx context.Context, name string) (i ImageInfo, err error) {
	return i, c.get(ctx, "/image?"+url.Values{"name": {name}}.Encode(), &i)
}

// Pull lets the daemon pull an image.
func (c control) Pull(ctx context.Context, p StackPull, progress func(StackStep)) (StackInfo, error) {
	return c.long(ctx, "/stacks/pull", p, progress)
}

// Export lets the daemon export an image.
func (c control) Export(ctx context.Context, x StackExport, progress func(StackStep)) (StackInfo, error) {
	return c.long(ctx, "/stacks/export", x, progress)
}

// GC lets the daemon take images away.
func (c control) GC(ctx context.Context, g StackGC) (r image.Removed, err error) {
	res, err := c.send(ctx, http.MethodPost, "/images/gc", g)
	if err != nil {
		return r, err
	}
	defer res.Body.Close()
	return r, json.NewDecoder(res.Body).Decode(&r)
}
