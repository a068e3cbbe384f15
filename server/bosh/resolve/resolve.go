package resolve

import (
	"context"
	"log/slog"

	"cupola/rootfs"
	"cupola/rootfs/reference"
	"cupola/runtime/container"
	"cupola/server/bosh"
	"cupola/server/bosh/compile"
	"cupola/server/bosh/director"
	"cupola/server/bosh/erb"
	"cupola/server/bosh/manifest"
	"cupola/server/bosh/release"
	"cupola/server/bosh/sandbox"
	"cupola/server/bosh/tarball"
	"cupola/server/images"
	"cupola/server/reconcile"
	"cupola/store"
	"cupola/store/blob"
	"cupola/store/cf"
)

// Resolver knows what the machine gives to deployments.
type Resolver struct {
	Containers *container.Engine
	Roots      *rootfs.Store
	Users      sandbox.Users
	States     string // the cell's directory: it removes what a killed daemon left there
	Images     images.Images
	Log        *slog.Logger

	// What uploaded releases need.
	Store    *store.Store
	Blobs    *blob.Store
	Fetch    func(ctx context.Context, url string, want tarball.Want) (*cf.BOSHRelease, error)
	Compiler *compile.Compiler
	StackFor map[string]string // the operator's choice of a stack by the OS of a stemcell
}

// Sandbox makes what runs code of releases.
func (res *Resolver) Sandbox() *sandbox.Sandbox {
	return sandbox.New(sandbox.Config{Containers: res.Containers, Roots: res.Roots, Users: res.Users, States: res.States, Log: res.Log})
}

// Resolve brings the images of a manifest here, and renders their jobs.
func (res *Resolver) Resolve(ctx context.Context, r director.Request) (*bosh.Deployment, error) {
	box := res.Sandbox()
	images := box.NewImages(func(ctx context.Context, reference string, as manifest.Credentials) (string, error) {
		r.Say("Downloading release image", reference)
		return res.pullRelease(ctx, reference, as)
	})
	uploaded := &archives{Resolver: res, box: box, request: r, found: map[manifest.Archive]*found{}, stacks: map[string]string{}}
	images.Release = uploaded.jobs
	defer func() {
		if err := images.Close(); err != nil {
			res.Log.WarnContext(ctx, "release images were not unmounted", "err", err)
		}
	}()
	ruby := func(ctx context.Context, program, input []byte) ([]byte, error) {
		r.Say("Rendering templates", "ruby")
		run, err := res.ruby(ctx, box, images)
		if err != nil {
			return nil, err
		}
		return run(ctx, program, input)
	}
	patched := func(ctx context.Context, image manifest.Image, job string, by bosh.Patch) (release.Job, error) {
		r.Say("Running pre_render_scripts", job)
		return box.Patched(ctx, images, image, job, by)
	}
	d, err := bosh.Resolver{Job: images.Job, Patched: patched, Pinned: images.Pinned, Ruby: ruby, Shared: r.Shared}.Resolve(ctx, r.Manifest)
	if err != nil {
		return nil, err
	}
	return d, uploaded.compile(ctx, d)
}

// ruby is what runs Ruby: a release image's, or a stack's.
func (res *Resolver) ruby(ctx context.Context, box *sandbox.Sandbox, images *sandbox.Images) (erb.Ruby, error) {
	from := images.All()
	for _, s := range res.Roots.Stacks.All() {
		from = append(from, string(reference.SchemePreloaded)+":"+s.Name)
	}
	run, _, err := box.Ruby(ctx, from...)
	if err == nil && run == nil {
		err = erb.ErrNone
	}
	return run, err
}

func (res *Resolver) pullRelease(ctx context.Context, reference string, as manifest.Credentials) (string, error) {
	img, err := res.Images.Pull(ctx, reconcile.ImagePull{Reference: reference, Credential: cf.Credential{Username: as.Username, Password: as.Password}, Say: func(string) {}})
	return img.Reference, err
}
