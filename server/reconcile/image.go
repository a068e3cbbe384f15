package reconcile

import (
	"context"
	"fmt"

	"cupola/server/desire"
	"cupola/store"
	"cupola/store/cf"
)

// ImagePull asks for an image that is to be a stack.
type ImagePull struct {
	Reference   string // as the user wrote it
	Credentials cf.Credentials
	Say         func(line string) // takes what the user should see of it
}

// image pulls the image of a build and writes down which one it is, so that the
// build, and what comes of it, stays on it.
func (f *fetches) image(ctx context.Context, build *cf.Build, reference string) error {
	f.say(build.AppGUID, false, "Pulling stack %s ...", reference)
	image, err := f.pull(ctx, ImagePull{Reference: reference, Credentials: build.Credentials,
		Say: func(line string) { f.say(build.AppGUID, false, "%s", line) }})
	if err == nil {
		err = f.store.Write(ctx, func(tx *store.Tx) error { return keepImage(tx, build.GUID, image) })
	}
	if err != nil {
		f.say(build.AppGUID, true, "Stack %s was not pulled: %v", reference, err)
		f.log.InfoContext(ctx, "image was not pulled", "app_guid", build.AppGUID, "err", err)
		return desire.BuildError{ID: "StagingError", Detail: fmt.Sprintf("Staging error: the stack %s was not pulled: %v", reference, err)}
	}
	f.say(build.AppGUID, false, "Stack is %s", image.Reference)
	return nil
}

func keepImage(tx *store.Tx, build string, image cf.StackImage) error {
	b, err := store.Builds.Get(tx, build)
	if err != nil || b.State != cf.BuildStaging {
		return err
	}
	b.Lifecycle.Image = &image
	return store.Builds.Update(tx, b)
}
