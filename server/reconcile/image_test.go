package reconcile

import (
	"errors"
	"strings"
	"testing"

	"cupola/runtime/lrp"
	"cupola/store"
	"cupola/store/cf"
)

const (
	imageTag    = "docker://reg.io/img:1"
	imageDigest = "docker://reg.io/img@sha256:abc"
)

// onImage makes a build on an image, and its app, which has no droplet yet.
func (h *harness) onImage(credentials cf.Credentials) *cf.Build {
	return h.buildOn("on-image", imageTag, credentials)
}

func (h *harness) buildOn(name, image string, credentials cf.Credentials) *cf.Build {
	app := &cf.App{Name: name, SpaceGUID: h.space.GUID, State: cf.Stopped, Lifecycle: cf.Lifecycle{Type: cf.LifecycleBuildpack, Stack: image}}
	p := &cf.Package{Type: "bits", State: cf.PackageReady, Digest: "p1"}
	b := &cf.Build{State: cf.BuildStaging, MemoryMB: 512, DiskMB: 512, LogRateLimit: -1, Lifecycle: app.Lifecycle, Credentials: credentials}
	h.write(func(tx *store.Tx) error {
		if err := store.Apps.Insert(tx, app); err != nil {
			return err
		}
		p.AppGUID, b.AppGUID = app.GUID, app.GUID
		if err := store.Packages.Insert(tx, p); err != nil {
			return err
		}
		b.PackageGUID = p.GUID
		return store.Builds.Insert(tx, b)
	})
	return b
}

func TestWhatWasStagedOnAnImageStaysOnIt(t *testing.T) {
	withHarness(t, func(t *testing.T, h *harness) {
		h.cell.presence.RootFSProviders = []string{"docker"}
		var pulls []ImagePull
		h.pull = func(p ImagePull) (Image, error) {
			pulls = append(pulls, p)
			p.Say("10 MB of 10 MB")
			return Image{StackImage: cf.StackImage{Reference: imageDigest, Compat: "cflinuxfs4"}}, nil
		}
		credentials := cf.Credentials{"reg.io": {Username: "u", Password: "p"}}
		b := h.onImage(credentials)
		if len(h.cell.started) != 1 || h.cell.started[0].RootFS != imageDigest {
			t.Fatalf("got %+v; want a staging on the image", h.cell.started)
		}
		if len(pulls) != 1 || pulls[0].Reference != imageTag || pulls[0].Credentials["reg.io"] != credentials["reg.io"] {
			t.Errorf("got %+v", pulls)
		}
		h.wantLine("STG", "10 MB of 10 MB")
		h.stop()
		h.begin()
		h.cell.exit(b.GUID, lrp.Event{Result: []byte(result), Outputs: []lrp.Blob{{Name: "droplet", Digest: "d2"}}})
		h.wait()
		if len(pulls) != 1 {
			t.Errorf("got %d pulls; want the one before the daemon ended", len(pulls))
		}
		got := get(h, store.Builds, b.GUID)
		if got.State != cf.BuildStaged {
			t.Fatalf("got %s %s", got.State, got.Error)
		}
		h.write(func(tx *store.Tx) error {
			app, err := store.Apps.Get(tx, b.AppGUID)
			if err != nil {
				return err
			}
			app.DropletGUID, app.State = got.DropletGUID, cf.Started
			p := &cf.Process{AppGUID: app.GUID, Type: "web", Instances: 1, MemoryMB: 64, DiskMB: 64, LogRateLimit: -1}
			if err := store.Processes.Insert(tx, p); err != nil {
				return err
			}
			return store.Apps.Update(tx, app)
		})
		h.wantStates("0:CLAIMED ")
		if last := h.cell.started[len(h.cell.started)-1]; last.RootFS != imageDigest {
			t.Errorf("got %s; want the image it was staged on", last.RootFS)
		}
	})
}

func TestAnImageThatIsNotPulledEndsItsBuild(t *testing.T) {
	withHarness(t, func(t *testing.T, h *harness) {
		h.pull = func(ImagePull) (Image, error) { return Image{}, errors.New("401 Unauthorized") }
		b := h.onImage(nil)
		if got := get(h, store.Builds, b.GUID); got.State != cf.BuildFailed || !strings.HasSuffix(got.Error, "the stack was not pulled: 401 Unauthorized") {
			t.Errorf("got %s %q", got.State, got.Error)
		}
		if len(h.cell.started) != 0 {
			t.Errorf("got %+v", h.cell.started)
		}
	})
}
