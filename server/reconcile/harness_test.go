package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"cupola/runtime/lrp"
	"cupola/server/control/apps"
	"cupola/store"
	"cupola/store/cf"
)

// harness is a Loop with a real store and a fake cell, in a synctest bubble.
type harness struct {
	t     *testing.T
	store *store.Store
	dir   string // of the store
	cell  *fakeCell
	loop  *Loop
	space cf.Space
	pull  func(ImagePull) (Image, error)
	stop  func()
	// versions are the loop's StackVersion; nil at first.
	versions func(string) string
	whole    error // what the loop's Whole finds to be wrong with any droplet

	pullUntil func(ctx context.Context, reference string) // before pull

	mu    sync.Mutex
	lines []lrp.LogLine
}

// withHarness runs a test in a bubble, with the loop running.
func withHarness(t *testing.T, f func(t *testing.T, h *harness)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h := &harness{t: t, cell: newFakeCell("cell-1")}
		h.pull = func(ImagePull) (Image, error) { return Image{}, errors.New("no network") }
		dir := t.TempDir()
		s, err := store.Open(store.Config{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		h.store, h.dir = s, dir
		h.seed()
		h.begin()
		defer func() { h.stop() }()
		f(t, h)
		h.cell.sane(t)
	})
}

// begin starts a loop, as a daemon does.
func (h *harness) begin() {
	ctx, cancel := context.WithCancel(h.t.Context())
	h.loop = New(Config{Store: h.store, Cells: []Cell{h.cell}, API: "http://api.localhost", StackVersion: h.versions, Release: apps.Release,
		Whole: func(context.Context, string) error { return h.whole },
		Pull: func(ctx context.Context, p ImagePull) (Image, error) {
			if h.pullUntil != nil {
				h.pullUntil(ctx, p.Reference)
			}
			return h.pull(p)
		},
		Logs: func(l lrp.LogLine) {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.lines = append(h.lines, l)
		}})
	h.cell.event, h.cell.freed = h.loop.Event, h.loop.Freed
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := h.loop.Run(ctx); err != nil {
			h.t.Error(err)
		}
	}()
	h.stop = func() {
		cancel()
		<-done
	}
	h.wait()
}

// wait waits until all goroutines are blocked.
func (h *harness) wait() { synctest.Wait() }

// pass lets time pass, in which what is due happens.
func (h *harness) pass(d time.Duration) {
	<-time.After(d)
	h.wait()
}

func (h *harness) write(f func(*store.Tx) error) {
	h.t.Helper()
	if err := h.store.Write(h.t.Context(), f); err != nil {
		h.t.Fatal(err)
	}
	h.wait()
}

func (h *harness) read(f func(*store.Tx) error) {
	h.t.Helper()
	if err := h.store.Read(h.t.Context(), f); err != nil {
		h.t.Fatal(err)
	}
}

func (h *harness) seed() {
	h.write(func(tx *store.Tx) error {
		org := cf.Org{Name: "org"}
		if err := store.Orgs.Insert(tx, &org); err != nil {
			return err
		}
		h.space = cf.Space{Name: "dev", OrgGUID: org.GUID}
		if err := store.Spaces.Insert(tx, &h.space); err != nil {
			return err
		}
		if err := store.Stacks.Insert(tx, &cf.Stack{Name: "minifs", State: "ACTIVE", Default: true}); err != nil {
			return err
		}
		return store.Buildpacks.Insert(tx, &cf.Buildpack{Name: "binary_buildpack", State: "READY", Enabled: true, Position: 1, Lifecycle: "buildpack", Digest: "b1"})
	})
}

// app makes a started app with a droplet and a web process.
func (h *harness) app(name string, instances, memoryMB int) (*cf.App, *cf.Process) {
	h.t.Helper()
	app := &cf.App{Name: name, SpaceGUID: h.space.GUID, State: cf.Stopped, Lifecycle: cf.Lifecycle{Type: cf.LifecycleBuildpack, Stack: "minifs"}}
	p := &cf.Process{Type: "web", Instances: instances, MemoryMB: memoryMB, DiskMB: 64, LogRateLimit: -1}
	h.write(func(tx *store.Tx) error {
		if err := store.Apps.Insert(tx, app); err != nil {
			return err
		}
		d := &cf.Droplet{AppGUID: app.GUID, State: cf.DropletStaged, Digest: "d1", Stack: "minifs", ProcessTypes: map[string]string{"web": "./run"}}
		if err := store.Droplets.Insert(tx, d); err != nil {
			return err
		}
		app.DropletGUID, app.State = d.GUID, cf.Started
		p.AppGUID = app.GUID
		if err := store.Processes.Insert(tx, p); err != nil {
			return err
		}
		return store.Apps.Update(tx, app)
	})
	return app, p
}

// build makes a build of a package of the app.
func (h *harness) build(app *cf.App, buildpacks ...string) *cf.Build {
	h.t.Helper()
	return h.buildWith(app, func(_ *cf.Package, b *cf.Build) { b.Lifecycle.Buildpacks = buildpacks })
}

// buildWith is build with a change of its package, unless the build has one, and of the build.
func (h *harness) buildWith(app *cf.App, change func(*cf.Package, *cf.Build)) *cf.Build {
	h.t.Helper()
	b := &cf.Build{AppGUID: app.GUID, State: cf.BuildStaging, MemoryMB: 512, DiskMB: 512, LogRateLimit: -1,
		Lifecycle: cf.Lifecycle{Type: cf.LifecycleBuildpack, Stack: "minifs"}}
	p := &cf.Package{AppGUID: app.GUID, Type: "bits", State: cf.PackageReady, Digest: "p1"}
	change(p, b)
	h.write(func(tx *store.Tx) error {
		if b.PackageGUID == "" {
			if err := store.Packages.Insert(tx, p); err != nil {
				return err
			}
			b.PackageGUID = p.GUID
		}
		return store.Builds.Insert(tx, b)
	})
	return b
}

func (h *harness) actuals() []*lrp.Actual {
	h.t.Helper()
	var rows []*lrp.Actual
	h.read(func(tx *store.Tx) (err error) {
		rows, _, err = store.ActualLRPs.List(tx, store.Query{Order: "index"})
		return err
	})
	return rows
}

// states are the states of all instances by index.
func (h *harness) states() string {
	h.t.Helper()
	s := ""
	for _, a := range h.actuals() {
		s += fmt.Sprintf("%d:%s", a.Index, a.State)
		if a.Stopping {
			s += "(stopping)"
		}
		if a.PlacementError != "" {
			s += "(" + a.PlacementError + ")"
		}
		s += " "
	}
	return s
}

func (h *harness) wantStates(want string) {
	h.t.Helper()
	if got := h.states(); got != want {
		h.t.Fatalf("got %q; want %q", got, want)
	}
}

// runAll makes all instances that are being made run.
func (h *harness) runAll() {
	for _, g := range h.cell.guids(lrp.PhaseCreating) {
		h.cell.run(g)
	}
	h.wait()
}

// exitAll makes all instances exit that were told to stop.
func (h *harness) exitAll() {
	for _, g := range h.cell.guids(lrp.PhaseStopping) {
		h.cell.exit(g, lrp.Event{})
	}
	h.wait()
}

func get[T any](h *harness, table *store.Table[T], guid string) *T {
	h.t.Helper()
	var v *T
	h.read(func(tx *store.Tx) (err error) {
		v, err = table.Get(tx, guid)
		return err
	})
	return v
}

func (h *harness) wantOneOf(want ...string) {
	h.t.Helper()
	if got := h.states(); !slices.Contains(want, got) {
		h.t.Fatalf("got %q; want one of %q", got, want)
	}
}

func (h *harness) wantLine(source, text string) {
	h.t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	if !slices.ContainsFunc(h.lines, func(l lrp.LogLine) bool { return l.Target.Source == source && string(l.Text) == text }) {
		h.t.Errorf("no line %s %q in %v", source, text, h.lines)
	}
}
