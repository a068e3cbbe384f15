package cell

import (
	"context"
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"cupola/runtime/lrp"
)

// partsOf tells the parts of a cell, with the GUIDs of what is on them.
func partsOf(c *Cell) map[string][]string {
	all := map[string][]string{}
	for _, p := range c.Parts() {
		id := p.Presence().ID
		if p.Presence().Leaving {
			id += " leaving"
		}
		all[id] = []string{}
		for _, s := range p.Containers() {
			all[id] = append(all[id], s.GUID)
		}
	}
	return all
}

func TestContainersStayOnTheirPart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cell")
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t)
		run := func(parts ...string) (*Cell, func()) {
			cfg := Config{Dir: dir, Presence: lrp.Cell{ID: "C"}, Containers: m, Network: fakeNetwork{m}, RootFS: fakeRoots{m}, Images: fakeRoots{m}, Files: fakeFiles{m}, Users: fakeUsers{m},
				Blob: m.blob, Keep: keepFake, Logs: func(lrp.LogLine) {}, Events: func(lrp.Event) {}}
			for _, id := range parts {
				cfg.Parts = append(cfg.Parts, PartConfig{Presence: lrp.Cell{ID: id}, Group: "group-" + id, Preloaded: map[string]string{"lucid64": "preloaded:minifs"}})
			}
			c, err := New(cfg)
			if err != nil {
				t.Fatal(err)
			}
			c.boot = "this boot"
			c.follow = func(*instance, string, string) (output, error) { return &fakeOutput{}, nil }
			c.check = (&daemon{}).check
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error)
			go func() { ended <- c.Run(ctx) }()
			synctest.Wait()
			return c, func() {
				cancel()
				if err := <-ended; err != nil {
					t.Error(err)
				}
			}
		}
		c, stop := run("a", "b")
		for n, p := range c.Parts() {
			spec := web()
			spec.GUID = "i-" + p.Presence().ID
			spec.Index, spec.RootFS = n, "preloaded://lucid64"
			p.Start(spec)
		}
		synctest.Wait()
		want := map[string][]string{"a": {"i-a"}, "b": {"i-b"}}
		if diff := cmp.Diff(want, partsOf(c)); diff != "" {
			t.Errorf("containers by part (-want +got):\n%s", diff)
		}
		if s := c.Containers(); len(s) != 2 || s[1].CellID != "b" {
			t.Errorf("got %+v; want each with its cell", s)
		}
		stop()
		c, stop = run("b", "c")
		want = map[string][]string{"a leaving": {"i-a"}, "b": {"i-b"}, "c": {}}
		if diff := cmp.Diff(want, partsOf(c)); diff != "" {
			t.Errorf("containers by part after a restart (-want +got):\n%s", diff)
		}
		stop()
	})
}

func TestPartMountsWhatItPreloads(t *testing.T) {
	p := newPart(nil, PartConfig{Preloaded: map[string]string{"lucid64": "docker://h.test/lucid@sha256:x", "here": ""}})
	for name, want := range map[string]string{
		"preloaded:lucid64": "docker://h.test/lucid@sha256:x", "preloaded://lucid64": "docker://h.test/lucid@sha256:x",
		"precached:lucid64": "docker://h.test/lucid@sha256:x", "preloaded:here": "preloaded:here", "preloaded:other": "preloaded:other",
		"docker:///lucid64": "docker:///lucid64",
	} {
		if got := p.rootFS(name); got != want {
			t.Errorf("%s: got %s; want %s", name, got, want)
		}
	}
}
