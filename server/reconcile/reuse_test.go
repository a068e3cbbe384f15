package reconcile

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"cupola/runtime/durable"
	"cupola/runtime/lrp"
	"cupola/store"
	"cupola/store/cf"
)

// skipping starts the loop again so that it skips stagings. The stack is of *version.
func (h *harness) skipping(version *string) {
	h.stop()
	h.versions = func(string) string { return *version }
	h.begin()
}

// staged makes a build and ends its staging, if one runs. It reports whether one did.
func (h *harness) staged(b *cf.Build, droplet string) (ran bool) {
	h.t.Helper()
	for _, s := range h.cell.started {
		if s.GUID == b.GUID {
			ran = true
			h.cell.exit(b.GUID, lrp.Event{Result: []byte(result), Outputs: []lrp.Blob{{Name: "droplet", Digest: droplet, Size: 7}, {Name: "cache", Digest: "c-" + droplet}}})
			h.wait()
		}
	}
	if got := get(h, store.Builds, b.GUID); got.State != cf.BuildStaged {
		h.t.Fatalf("got %+v; want it STAGED", got)
	}
	return ran
}

func (h *harness) dropletOf(b *cf.Build) *cf.Droplet {
	h.t.Helper()
	return get(h, store.Droplets, get(h, store.Builds, b.GUID).DropletGUID)
}

// A push that changes nothing takes the bits of the droplet before, as another droplet,
// and the log says so.
func TestAnUnchangedBuildIsNotStaged(t *testing.T) {
	withHarness(t, func(t *testing.T, h *harness) {
		version := "1"
		h.skipping(&version)
		app, _ := h.app("hello", 0, 64)
		first := h.build(app)
		if !h.staged(first, "d2") {
			t.Fatal("the first build was not staged")
		}
		second := h.build(app)
		if h.staged(second, "d3") {
			t.Fatal("the second build was staged, too")
		}
		before, d := h.dropletOf(first), h.dropletOf(second)
		if d.Digest != "d2" || d.Size != 7 || d.GUID == before.GUID || d.BuildGUID != second.GUID || d.PackageGUID != second.PackageGUID || d.ProcessTypes["web"] != "./run" || len(d.Buildpacks) != 1 {
			t.Errorf("got droplet %+v", d)
		}
		h.wantLine("STG", "Nothing changed since droplet "+before.GUID+": staging is skipped")
		h.wantLine("API", "Staging complete for build "+second.GUID)
		third := h.build(app)
		if h.staged(third, "d4") || h.dropletOf(third).Digest != "d2" {
			t.Error("the third build did not take the droplet")
		}
	})
}

// What a staging depends on makes it run when it changes.
func TestAChangedBuildIsStaged(t *testing.T) {
	for name, change := range map[string]func(h *harness, app *cf.App, version *string, first *cf.Build) *cf.Build{
		"bits": func(h *harness, app *cf.App, _ *string, _ *cf.Build) *cf.Build {
			return h.buildWith(app, func(p *cf.Package, _ *cf.Build) { p.Digest = "p2" })
		},
		"environment": func(h *harness, app *cf.App, _ *string, _ *cf.Build) *cf.Build {
			return h.buildWith(app, func(_ *cf.Package, b *cf.Build) { b.Env = map[string]string{"A": "b"} })
		},
		"environment of all stagings": func(h *harness, app *cf.App, _ *string, _ *cf.Build) *cf.Build {
			h.write(func(tx *store.Tx) error {
				g, err := store.EnvGroups.First(tx, store.Query{Where: map[string][]string{"names": {"staging"}}})
				if err == nil {
					g.Vars = map[string]string{"A": "b"}
					return store.EnvGroups.Update(tx, g)
				}
				return store.EnvGroups.Insert(tx, &cf.EnvGroup{Name: "staging", Vars: map[string]string{"A": "b"}})
			})
			return h.build(app)
		},
		"buildpacks": func(h *harness, app *cf.App, _ *string, _ *cf.Build) *cf.Build {
			return h.build(app, "binary_buildpack")
		},
		"a buildpack's bits": func(h *harness, app *cf.App, _ *string, _ *cf.Build) *cf.Build {
			h.write(func(tx *store.Tx) error {
				b, err := store.Buildpacks.First(tx, store.Query{})
				if err != nil {
					return err
				}
				b.Digest = "another"
				return store.Buildpacks.Update(tx, b)
			})
			return h.build(app)
		},
		"the stack's files": func(h *harness, app *cf.App, version *string, _ *cf.Build) *cf.Build {
			*version = "2"
			return h.build(app)
		},
		"memory": func(h *harness, app *cf.App, _ *string, _ *cf.Build) *cf.Build {
			return h.buildWith(app, func(_ *cf.Package, b *cf.Build) { b.MemoryMB = 600 })
		},
		"a restage": func(h *harness, app *cf.App, _ *string, first *cf.Build) *cf.Build {
			return h.buildWith(app, func(_ *cf.Package, b *cf.Build) { b.PackageGUID = first.PackageGUID })
		},
		"a cleared build cache": func(h *harness, app *cf.App, _ *string, _ *cf.Build) *cf.Build {
			h.write(func(tx *store.Tx) error { return store.BuildCaches.ClearOf(tx, app.GUID) })
			return h.build(app)
		},
		"a deleted droplet": func(h *harness, app *cf.App, _ *string, first *cf.Build) *cf.Build {
			d := h.dropletOf(first)
			h.write(func(tx *store.Tx) error { return store.Droplets.Delete(tx, d.GUID) })
			return h.build(app)
		},
	} {
		t.Run(name, func(t *testing.T) {
			withHarness(t, func(_ *testing.T, h *harness) {
				version := "1"
				h.skipping(&version)
				app, _ := h.app("hello", 0, 64)
				first := h.build(app)
				h.staged(first, "d2")
				b := change(h, app, &version, first)
				if !h.staged(b, "d3") || h.dropletOf(b).Digest != "d3" {
					t.Error("it was not staged")
				}
			})
		})
	}
}

// A droplet whose bits a disk has lost is not taken, and the log says so.
func TestABuildOfALostDropletIsStaged(t *testing.T) {
	for found, err := range map[string]error{"are gone": fs.ErrNotExist, "are damaged": durable.ErrDamaged, "cannot be read": errors.New("input/output error")} {
		t.Run(found, func(t *testing.T) {
			withHarness(t, func(t *testing.T, h *harness) {
				version := "1"
				h.skipping(&version)
				app, _ := h.app("hello", 0, 64)
				first := h.build(app)
				h.staged(first, "d2")
				before := h.dropletOf(first)
				h.whole = fmt.Errorf("droplet d2: %w", err)
				second := h.build(app)
				if !h.staged(second, "d3") || h.dropletOf(second).Digest != "d3" {
					t.Error("it was not staged")
				}
				h.wantLine("STG", "Nothing changed since droplet "+before.GUID+", but its files "+found+": it is staged again")
				h.whole = nil
				if third := h.build(app); h.staged(third, "d4") || h.dropletOf(third).Digest != "d3" {
					t.Error("the build after it did not take its droplet")
				}
			})
		})
	}
}

// A buildpack by URL may be another one each time: its builds are always staged.
func TestABuildWithADownloadIsStaged(t *testing.T) {
	withHarness(t, func(t *testing.T, h *harness) {
		version := "1"
		h.skipping(&version)
		app, _ := h.app("hello", 0, 64)
		for _, droplet := range []string{"d2", "d3"} {
			if !h.staged(h.build(app, "https://example.com/buildpack.zip"), droplet) {
				t.Errorf("%s was not staged", droplet)
			}
		}
	})
}

// Where nobody knows what a stack's files are, all builds are staged.
func TestABuildOnAnUnknownStackIsStaged(t *testing.T) {
	withHarness(t, func(t *testing.T, h *harness) {
		version := ""
		h.skipping(&version)
		app, _ := h.app("hello", 0, 64)
		for _, droplet := range []string{"d2", "d3"} {
			if !h.staged(h.build(app), droplet) {
				t.Errorf("%s was not staged", droplet)
			}
		}
	})
}
