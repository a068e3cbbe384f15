package reconcile

import (
	"context"
	"fmt"

	"cupola/rootfs/system"
	"cupola/server/desire"
	"cupola/store"
	"cupola/store/cf"
)

// ImagePull asks for an image that containers are to run on.
type ImagePull struct {
	Reference   string // as the user wrote it
	Credentials cf.Credentials
	Credential  cf.Credential     // instead of those, whatever the registry is
	Say         func(line string) // takes what the user should see of it
}

// Image is an image that was pulled.
type Image struct {
	cf.StackImage
	Metadata desire.DockerMetadata
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
	image, err := f.pull(ctx, ImagePull{Reference: reference, Credentials: build.Credentials,
		Say: func(line string) { f.say(build.AppGUID, false, "%s", line) }})
	var was cf.StackImage
	if err = cause(ctx, err); err == nil {
		err = f.store.Write(ctx, func(tx *store.Tx) (err error) {
			if docker {
				return settleDocker(tx, build.GUID, image)
			}
			was, err = keepImage(tx, build.GUID, image.StackImage)
			return err
		})
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

// settleDocker ends a build whose package is an image: the droplet is what the
// image says of itself.
func settleDocker(tx *store.Tx, build string, image Image) error {
	b, err := store.Builds.Get(tx, build)
	if err != nil || b.State != cf.BuildStaging {
		return err
	}
	p, err := store.Packages.Get(tx, b.PackageGUID)
	if err != nil {
		return err
	}
	b.Lifecycle.Image = &image.StackImage
	d := &cf.Droplet{AppGUID: b.AppGUID, PackageGUID: p.GUID, BuildGUID: b.GUID, State: cf.DropletStaged, Lifecycle: b.Lifecycle, Image: p.Image,
		ProcessTypes: map[string]string{"web": image.Metadata.Command()}, ExecutionMetadata: image.Metadata.Text()}
	if err := store.Droplets.Insert(tx, d); err != nil {
		return err
	}
	b.State, b.DropletGUID = cf.BuildStaged, d.GUID
	if err := store.Builds.Update(tx, b); err != nil {
		return err
	}
	return recordDroplet(tx, b, d)
}
