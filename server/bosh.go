package server

import (
	"context"

	"cupola/rootfs/reference"
	"cupola/runtime/lrp"
	"cupola/server/bosh"
	"cupola/server/bosh/director"
	"cupola/server/bosh/erb"
	"cupola/server/bosh/manifest"
	"cupola/server/bosh/release"
	"cupola/server/bosh/sandbox"
	"cupola/server/reconcile"
	"cupola/store/cf"
)

func (d *daemon) openDirector() {
	d.director = director.New(director.Config{Store: d.store, Volumes: d.volumes, Resolve: d.resolve, AZ: d.cellsOf, Log: d.Log})
}

// cellsOf are the tags of an AZ that is made of logical cells: its name, if a
// cell has that as a tag.
func (d *daemon) cellsOf(az string) []string {
	for _, p := range d.cell.Parts() {
		if (lrp.Constraint{Require: []string{az}}).Allows(p.Presence().Tags) && az != "" {
			return []string{az}
		}
	}
	return nil
}

// resolve brings the images of a manifest here, and renders their jobs.
func (d *daemon) resolve(ctx context.Context, r director.Request) (*bosh.Deployment, error) {
	box := sandbox.New(sandbox.Config{Containers: d.containers, Roots: d.roots, Users: d.owners, States: d.dir.Path("cell"), Log: d.Log})
	images := box.NewImages(func(ctx context.Context, reference string, as manifest.Credentials) (string, error) {
		r.Say("Downloading release image", reference)
		return d.pullRelease(ctx, reference, as)
	})
	defer func() {
		if err := images.Close(); err != nil {
			d.Log.WarnContext(ctx, "release images were not unmounted", "err", err)
		}
	}()
	ruby := func(ctx context.Context, program, input []byte) ([]byte, error) {
		r.Say("Rendering templates", "ruby")
		run, err := d.ruby(ctx, box, images)
		if err != nil {
			return nil, err
		}
		return run(ctx, program, input)
	}
	patched := func(ctx context.Context, image manifest.Image, job string, by bosh.Patch) (release.Job, error) {
		r.Say("Running pre_render_scripts", job)
		return box.Patched(ctx, images, image, job, by)
	}
	return bosh.Resolver{Job: images.Job, Patched: patched, Pinned: images.Pinned, Ruby: ruby, Shared: r.Shared}.Resolve(ctx, r.Manifest)
}

// ruby is what runs Ruby: a release image's, or a stack's.
func (d *daemon) ruby(ctx context.Context, box *sandbox.Sandbox, images *sandbox.Images) (erb.Ruby, error) {
	from := images.All()
	for _, s := range d.roots.Stacks.All() {
		from = append(from, string(reference.SchemePreloaded)+":"+s.Name)
	}
	run, _, err := box.Ruby(ctx, from...)
	if err == nil && run == nil {
		err = erb.ErrNone
	}
	return run, err
}

func (d *daemon) pullRelease(ctx context.Context, reference string, as manifest.Credentials) (string, error) {
	img, err := d.images.Pull(ctx, reconcile.ImagePull{Reference: reference, Credential: cf.Credential{Username: as.Username, Password: as.Password}, Say: func(string) {}})
	return img.Reference, err
}
