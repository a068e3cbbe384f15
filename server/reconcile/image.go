package reconcile

import (
	"context"
	"errors"
	"fmt"

	"cupola/rootfs/registry"
	"cupola/rootfs/system"
	"cupola/runtime/lrp"
	"cupola/server/desire"
	"cupola/store"
	"cupola/store/cf"
)

// ImagePull asks for an image for containers.
type ImagePull struct {
	Reference   string // as the user wrote it
	AppGUID     string // "": not for an app
	Credentials cf.Credentials
	Credential  cf.Credential     // instead of those, whatever the registry is
	Buildpack   bool              // it has Cloud Native Buildpacks, and nothing runs on it
	Have        string            // an image of the app's droplet, which its registry let the app have; "" for none
	Say         func(line string) // takes what the user should see of it
}

// Pull takes an image into the cache.
type Pull = func(context.Context, ImagePull) (Image, error)

// Image is a pulled image.
type Image struct {
	cf.StackImage
	Metadata  desire.DockerMetadata
	Buildpack string   // its own one of its Cloud Native Buildpacks: ID@VERSION
	Layers    []string // SHA-256 in hex, of one with buildpacks
}

// needed are the images of a build.
type needed struct {
	stack      string   // or the docker lifecycle's package; "" for none
	buildpacks []string // of Cloud Native Buildpacks
}

// images pulls the images of a build, one after the other.
func (f *fetches) images(ctx context.Context, build *cf.Build, want needed) error {
	if want.stack != "" {
		if err := f.image(ctx, build, want.stack); err != nil {
			return err
		}
	}
	if len(want.buildpacks) == 0 {
		return nil
	}
	return f.buildpacks(ctx, build, want.buildpacks)
}

// buildpacks pulls the images of buildpacks, and writes down which they are.
func (f *fetches) buildpacks(ctx context.Context, build *cf.Build, names []string) error {
	var all []cf.BuildpackImage
	for _, name := range names {
		f.say(build.AppGUID, false, "Pulling buildpack %s ...", name)
		found, err := f.buildpack(ctx, build, name)
		if err != nil {
			f.say(build.AppGUID, true, "The buildpack %s was not pulled: %v", name, err)
			f.log.InfoContext(ctx, "buildpack was not pulled", "app_guid", build.AppGUID, "err", err)
			return desire.BuildpackNotDownloaded()
		}
		f.say(build.AppGUID, false, "The buildpack is %s of %s", found.Buildpack, found.Reference)
		all = append(all, found)
	}
	return f.store.Write(ctx, func(tx *store.Tx) error {
		b, err := store.Builds.Get(tx, build.GUID)
		if err != nil || b.State != cf.BuildStaging {
			return ignoreNotFound(err)
		}
		b.Lifecycle.Packages = all
		return store.Builds.Update(tx, b)
	})
}

// buildpack pulls the image of a buildpack. If its registry does not answer, the one of the app's
// droplet is used.
func (f *fetches) buildpack(ctx context.Context, build *cf.Build, name string) (cf.BuildpackImage, error) {
	pull := func(reference, have string) (cf.BuildpackImage, error) {
		image, err := f.pull(ctx, ImagePull{Reference: reference, AppGUID: build.AppGUID, Credentials: build.Credentials, Buildpack: true, Have: have,
			Say: func(line string) { f.say(build.AppGUID, false, "%s", line) }})
		return cf.BuildpackImage{Name: name, Reference: image.Reference, Buildpack: image.Buildpack, Layers: image.Layers}, cause(ctx, err)
	}
	found, err := pull(name, "")
	if err == nil || errors.Is(err, ErrNoBuildpack) || errors.Is(err, registry.ErrDenied) || errors.Is(err, registry.ErrMissing) || ctx.Err() != nil {
		return found, err
	}
	last, lastErr := f.lastBuildpack(ctx, build.AppGUID, name)
	if lastErr != nil || last == "" {
		return found, err
	}
	f.say(build.AppGUID, true, "WARNING: the buildpack was not pulled: %v; using that of the last staging", err)
	return pull(last, last)
}

// ErrNoBuildpack says that an image has no Cloud Native Buildpack.
var ErrNoBuildpack = errors.New("it is not an image of a Cloud Native Buildpack: it has no label io.buildpacks.buildpackage.metadata")

// lastBuildpack is the image that a buildpack's name meant to an app's droplet; "" for none.
func (f *fetches) lastBuildpack(ctx context.Context, appGUID, name string) (reference string, err error) {
	d, err := f.lastDroplet(ctx, appGUID)
	if err != nil || d == nil {
		return "", err
	}
	for _, p := range d.Lifecycle.Packages {
		if p.Name == name {
			reference = p.Reference
		}
	}
	return reference, nil
}

// lastImage is the image that an app's droplet runs on, or is; "" for none.
func (f *fetches) lastImage(ctx context.Context, appGUID string) (reference string, err error) {
	d, err := f.lastDroplet(ctx, appGUID)
	if err != nil || d == nil || d.Lifecycle.Image == nil {
		return "", err
	}
	return d.Lifecycle.Image.Reference, nil
}

// lastDroplet is the droplet of an app; nil for none.
func (f *fetches) lastDroplet(ctx context.Context, appGUID string) (d *cf.Droplet, err error) {
	err = f.store.Read(ctx, func(tx *store.Tx) error {
		app, err := store.Apps.Get(tx, appGUID)
		if err != nil || app.DropletGUID == "" {
			return err
		}
		d, err = store.Droplets.Get(tx, app.DropletGUID)
		return err
	})
	return d, err
}

// image pulls the image of a build and writes down which one it is, so that the
// build, and what comes of it, stays on it. A build of the docker lifecycle is
// done then.
func (f *fetches) image(ctx context.Context, build *cf.Build, reference string) error {
	docker := build.Lifecycle.Type == cf.LifecycleDocker
	what := "stack"
	if docker {
		what = "image"
	}
	f.say(build.AppGUID, false, "Pulling %s %s ...", what, reference)
	have, err := f.lastImage(ctx, build.AppGUID)
	if err != nil {
		return err
	}
	image, err := f.pull(ctx, ImagePull{Reference: reference, AppGUID: build.AppGUID, Credentials: build.Credentials, Have: have,
		Say: func(line string) { f.say(build.AppGUID, false, "%s", line) }})
	var was cf.StackImage
	if err = cause(ctx, err); err == nil {
		var lines []lrp.LogLine
		err = f.store.Write(ctx, func(tx *store.Tx) (err error) {
			if docker {
				lines, err = f.recordImageBuild(tx, build.GUID, image)
				return err
			}
			was, err = keepImage(tx, build.GUID, image.StackImage)
			return err
		})
		if err == nil {
			for _, line := range lines {
				f.logs(line)
			}
		}
	}
	if err != nil {
		f.say(build.AppGUID, true, "The %s was not pulled: %v", what, err)
		f.log.InfoContext(ctx, "image was not pulled", "app_guid", build.AppGUID, "err", err)
		return desire.CannotStage(fmt.Sprintf("the %s was not pulled: %v", what, err))
	}
	f.say(build.AppGUID, false, "The %s is %s", what, image.Reference)
	if docker {
		f.logs(note(build.AppGUID, "Staging complete for build %s", build.GUID))
	}
	f.compare(build.AppGUID, reference, was, image.StackImage)
	return nil
}

// compare says what has changed since the app was staged last.
func (f *fetches) compare(appGUID, reference string, was, is cf.StackImage) {
	if was.Reference != "" && was.Reference != is.Reference {
		f.say(appGUID, false, "WARNING: the stack %s has moved since the app was staged last, then it was %s", reference, was.Reference)
	}
	if system.KernelChanged(was.Kernel, is.Kernel) {
		f.say(appGUID, false, "WARNING: the app was staged last on Linux %s, and this machine has Linux %s now: programs of the image must be able to run on it", was.Kernel, is.Kernel)
	}
}

// keepImage writes an image into its build. was is the one that the same
// reference meant to the app's droplet, if it has such a droplet.
func keepImage(tx *store.Tx, build string, image cf.StackImage) (was cf.StackImage, err error) {
	b, err := store.Builds.Get(tx, build)
	if err != nil || b.State != cf.BuildStaging {
		return was, err
	}
	image.Env = nil
	b.Lifecycle.Image = &image
	if err := store.Builds.Update(tx, b); err != nil {
		return was, err
	}
	app, err := store.Apps.Get(tx, b.AppGUID)
	if err != nil || app.DropletGUID == "" {
		return was, err
	}
	d, err := store.Droplets.Get(tx, app.DropletGUID)
	if err == nil && d.Lifecycle.Stack == b.Lifecycle.Stack && d.Lifecycle.Image != nil {
		was = *d.Lifecycle.Image
	}
	return was, err
}

// recordImageBuild ends a build whose package is an image: the droplet is what the
// image says of itself.
func (f *fetches) recordImageBuild(tx *store.Tx, build string, image Image) ([]lrp.LogLine, error) {
	b, err := store.Builds.Get(tx, build)
	if err != nil || b.State != cf.BuildStaging || b.DropletGUID != "" {
		return nil, err
	}
	p, err := store.Packages.Get(tx, b.PackageGUID)
	if err != nil {
		return nil, err
	}
	b.Lifecycle.Image = &image.StackImage
	d := &cf.Droplet{AppGUID: b.AppGUID, PackageGUID: p.GUID, BuildGUID: b.GUID, State: cf.DropletStaged, Lifecycle: b.Lifecycle, Image: p.Image,
		ProcessTypes: image.Metadata.ProcessTypes(), ExecutionMetadata: image.Metadata.Text()}
	return f.release.staged(tx, b, d)
}
