package store

import (
	"slices"
	"testing"

	"cupola/store/cf"
)

func TestNamedImagesAreThoseOfDropletsAndOfBuildsUnderWay(t *testing.T) {
	s := openTest(t)
	_, _, app := seed(t, s)
	on := func(image string) cf.Lifecycle { return cf.Lifecycle{Image: &cf.StackImage{Reference: image}} }
	write(t, s, func(tx *Tx) error {
		for _, d := range []cf.Lifecycle{on("b"), on("b"), {Stack: "minifs"}} {
			if err := Droplets.Insert(tx, &cf.Droplet{AppGUID: app.GUID, State: cf.DropletStaged, Lifecycle: d}); err != nil {
				return err
			}
		}
		if err := Builds.Insert(tx, &cf.Build{AppGUID: app.GUID, State: cf.BuildFailed, Lifecycle: on("c")}); err != nil {
			return err
		}
		native := on("a")
		native.Packages = []cf.BuildpackImage{{Name: "docker://n", Reference: "n", Buildpack: "n@1", Layers: []string{"l"}}}
		return Builds.Insert(tx, &cf.Build{AppGUID: app.GUID, State: cf.BuildStaging, Lifecycle: native})
	})
	read(t, s, func(tx *Tx) error {
		got, err := tx.NamedImages()
		if want := []string{"a", "b", "n"}; !slices.Equal(got, want) {
			t.Errorf("got %v; want %v", got, want)
		}
		return err
	})
}
