package stack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"cupola/rootfs/image"
	"cupola/rootfs/reference"
	"cupola/rootfs/stack"
	"cupola/rootfs/system"
	"cupola/rootfs/tree"
	"cupola/server/admin/steps"
	"cupola/server/images"
	"cupola/store"
	"cupola/store/cf"
)

// PullRequest asks for an image of a registry or an OCI layout.
type PullRequest struct {
	Reference string `arg:"" help:"The image: docker://host/namespace/name:tag, without a host on Docker Hub; oci:DIR for an image layout."`
	Name      string `help:"Also make it a stack of this name, which all apps may use." placeholder:"NAME"`
	Compat    string `help:"Value of CF_STACK on that stack, for buildpacks that accept only certain stacks." placeholder:"STACK"`
	// Fallbacks are references that have the same image, asked when the first does not give it, now and whenever it is
	// pulled again. Nil leaves those there are; an empty slice forgets them.
	Fallbacks   []string       `name:"fallback" help:"Another reference of the same image, tried if the first one fails, also by later pulls and by apps that name the image; may be repeated, and they are tried in order." placeholder:"IMAGE" xor:"fallback"`
	Username    string         `help:"Registry user." env:"CUPOLA_REGISTRY_USERNAME" placeholder:"USER"`
	Password    string         `help:"Registry password; prefer the environment variable." env:"CUPOLA_REGISTRY_PASSWORD,CF_DOCKER_PASSWORD" placeholder:"PASSWORD"`
	Credentials cf.Credentials `flag:"-"` // of this and other registries
}

// ExportRequest asks for a copy of an image as an OCI layout, or of another stack as a tar.
type ExportRequest struct {
	Name string `arg:"" help:"A stack's name, or the reference or digest of an image."`
	Path string `arg:"" help:"What to create: a directory for an image, a tar for a stack that was built or imported."` // absolute; nothing is there yet
}

// GCRequest says which of the unused images to delete.
type GCRequest struct {
	OlderThan time.Duration `help:"Remove images that were unused for this long." placeholder:"168h"`
	MaxMB     int64         `help:"Remove the least recently used images until the rest fit in this many MiB." name:"max-mb" placeholder:"MB"`
	All       bool          `help:"Remove all unused images."`
	DryRun    bool          `help:"Only list what would be removed."`
}

// ImageInfo is an image in the cache as operators see it.
type ImageInfo struct {
	image.Info
	Pinned  bool   // an app, a build or the BBS names it
	Warning string `json:",omitempty"` // what to expect of it on this machine
}

// images lists the images, the one used last first.
func (l *Library) images(ctx context.Context) ([]ImageInfo, error) {
	pinned, err := l.Pinned(ctx)
	if err != nil {
		return nil, err
	}
	all, err := l.Roots.Images.List()
	if err != nil {
		return nil, err
	}
	infos := []ImageInfo{}
	for _, i := range all {
		infos = append(infos, ImageInfo{i, pinned[i.Digest], system.KernelWarning(i.Kernel)})
	}
	return infos, nil
}

// image finds an image by its digest, a reference it was pulled by, or the name
// of a stack that is made of it.
func (l *Library) image(ctx context.Context, name string) (ImageInfo, error) {
	asked := name
	if _, ok := l.Roots.Stacks.Get(name); !ok {
		name = withScheme(name)
	}
	i, err := l.Roots.Images.Find(name)
	if errors.Is(err, image.ErrNotPulled) {
		return ImageInfo{}, errNothingCalled(asked)
	}
	if err != nil {
		return ImageInfo{}, err
	}
	pinned, err := l.Pinned(ctx)
	return ImageInfo{i, pinned[i.Digest], system.KernelWarning(i.Kernel)}, err
}

func errNothingCalled(name string) error {
	return fmt.Errorf("there is no stack or image %s: see 'cupola stack list'", name)
}

// Pinned are the digests of the images that apps, or LRPs and tasks of the BBS, run on or may run on again.
func (l *Library) Pinned(ctx context.Context) (map[string]bool, error) {
	pinned := map[string]bool{}
	return pinned, l.Store.Read(ctx, func(tx *store.Tx) error {
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
		return l.pinByOthers(tx, pinned)
	})
}

// Pull takes an image into the cache and, if it gets a name, makes a stack of it.
func (l *Library) Pull(ctx context.Context, p PullRequest, report steps.Func) (Info, error) {
	ref, err := reference.Parse(withScheme(p.Reference))
	if err != nil {
		return Info{}, err
	}
	return l.pull(ctx, p, ref, true, report)
}

// PullForAPI is Pull for an admin of the API, who is not one of the machine: the
// image is in a registry, at an address that users may name, too.
func (l *Library) PullForAPI(ctx context.Context, p PullRequest, report steps.Func) (Info, error) {
	ref, err := reference.Parse(withScheme(p.Reference))
	if err != nil {
		return Info{}, err
	}
	if ref.Scheme != reference.SchemeDocker {
		return Info{}, fmt.Errorf("invalid Reference %q: give an image in a registry, like docker://host/name:tag; 'cupola stack pull' on the machine takes others", p.Reference)
	}
	if p.Fallbacks != nil {
		return Info{}, errors.New("invalid Fallbacks: only 'cupola stack pull --fallback' on the machine sets them")
	}
	return l.pull(ctx, p, ref, false, report)
}

func (l *Library) pull(ctx context.Context, p PullRequest, ref reference.Reference, trusted bool, report steps.Func) (Info, error) {
	o, err := p.options(ref, report)
	if err != nil {
		return Info{}, err
	}
	o.Trusted = trusted
	img, err := l.Roots.Images.Pull(ctx, ref, o)
	if err != nil {
		return Info{}, err
	}
	if w := system.KernelWarning(img.Kernel); w != "" {
		o.Warn(w)
	}
	if p.Name == "" {
		return Info{Stack: imageStack(ref, img)}, nil
	}
	s, err := l.Roots.Stacks.AddImage(stack.Spec{Name: p.Name, Compat: p.Compat, Origin: ref.String()}, img.Digest)
	if err != nil {
		return Info{}, err
	}
	return l.info(s), l.Offer(ctx)
}

func (p PullRequest) options(ref reference.Reference, report steps.Func) (image.PullOptions, error) {
	var mu sync.Mutex // warnings come concurrently with layers
	tell := func(s steps.Step) {
		mu.Lock()
		defer mu.Unlock()
		report(s)
	}
	o := images.Options(ref, p.Credentials, func(s image.LayerProgress) {
		tell(steps.Step{Step: "layer", Detail: fmt.Sprintf("%d of %d %s", s.Index+1, s.Layers, s.Phase), Done: s.Done, Total: s.Total})
	}, func(w string) { tell(steps.Step{Step: "warning", Detail: w}) })
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

// Export writes an image as an OCI layout, or a stack that was built or imported as a tar.
func (l *Library) Export(ctx context.Context, x ExportRequest, report steps.Func) (Info, error) {
	if !filepath.IsAbs(x.Path) {
		return Info{}, fmt.Errorf("export to %s: the path is not absolute", x.Path)
	}
	if s, ok := l.Roots.Stacks.Get(x.Name); ok && s.Kind == stack.KindDir {
		return l.info(s), l.exportTree(ctx, x, report)
	}
	i, err := l.image(ctx, x.Name)
	if err != nil {
		return Info{}, err
	}
	img, err := l.Roots.Images.Export(ctx, i.Digest, x.Path, func(done, total int64) {
		report(steps.Step{Step: "export", Detail: filepath.Base(x.Path), Done: done, Total: total})
	})
	if err != nil {
		return Info{}, err
	}
	ref, err := reference.Parse(img.Reference)
	return Info{Stack: imageStack(ref, img)}, err
}

// exportTree writes the files of a stack, for Import; a part of them does not stay.
func (l *Library) exportTree(ctx context.Context, x ExportRequest, report steps.Func) error {
	report(steps.Step{Step: "export", Detail: filepath.Base(x.Path)})
	f, err := os.OpenFile(x.Path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	err = l.Roots.Stacks.SaveTree(ctx, x.Name, f)
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(x.Path))
	}
	return nil
}

// Collect removes images that nothing needs: no app, stack or container, and none used in the last minutes.
func (l *Library) Collect(ctx context.Context, g GCRequest) (image.Removed, error) {
	if g.OlderThan <= 0 && g.MaxMB <= 0 && !g.All {
		return image.Removed{}, errors.New("say which images are to go")
	}
	l.GC.Lock()
	defer l.GC.Unlock()
	pinned, err := l.Pinned(ctx)
	if err != nil {
		return image.Removed{}, err
	}
	return l.Roots.Images.GC(ctx, image.Policy{Keep: func(digest string) bool { return pinned[digest] }, OlderThan: g.OlderThan, MaxBytes: g.MaxMB << 20, All: g.All, DryRun: g.DryRun})
}

// UnusedImages lists the images that Collect removes with All, the least recently used first.
func (l *Library) UnusedImages(ctx context.Context) ([]tree.Unused, error) {
	pinned, err := l.Pinned(ctx)
	if err != nil {
		return nil, err
	}
	return l.Roots.Images.Unused(ctx, image.Policy{Keep: func(digest string) bool { return pinned[digest] }, All: true})
}

// RemoveImages removes some of these by their digests, unless something needs them by now.
func (l *Library) RemoveImages(ctx context.Context, digests []string) error {
	l.GC.Lock()
	defer l.GC.Unlock()
	pinned, err := l.Pinned(ctx)
	if err != nil {
		return err
	}
	_, err = l.Roots.Images.GC(ctx, image.Policy{Keep: func(digest string) bool { return pinned[digest] || !slices.Contains(digests, digest) }, All: true})
	return err
}
