package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cupola/server/cells"
)

// cellsOf is the configuration that a file makes.
func cellsOf(t testing.TB, text string, args ...string) (cells.Config, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "cupola.yml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var c commandLine
	parser, err := newParser(&c)
	if err != nil {
		t.Fatal(err)
	}
	_, err = parser.Parse(append([]string{"--config", file, "serve"}, args...))
	return c.Serve.Config.Config, err
}

func TestCellsFromTheConfigurationFile(t *testing.T) {
	got, err := cellsOf(t, `
preloaded_rootfses: [minifs]
rootfs_providers: [docker]
cells:
- {name: one, tags: [Staging, skynet], required_tags: [Skynet, gpu], zone: z2, memory: 512M, disk: 2G, containers: 7}
- name: two
  preloaded_rootfses: {lucid64: /srv/lucid, cflinuxfs2: "docker://h.test/cflinuxfs2:1", here: }
  rootfs_providers: []
`)
	if err != nil {
		t.Fatal(err)
	}
	want := cells.Config{Preloaded: cells.Preloaded{"minifs": ""}, Providers: []string{"docker"}, Cells: cells.List{
		{Name: "one", Tags: []string{"staging", "skynet", "gpu"}, Required: []string{"skynet", "gpu"}, Zone: "z2", MemoryMB: 512, DiskMB: 2048, Containers: 7, Preloaded: cells.Preloaded{"minifs": ""}, Providers: []string{"docker"}},
		{Name: "two", Tags: []string{}, Required: []string{}, Zone: "z1", Containers: 250, Providers: []string{}, Preloaded: cells.Preloaded{"lucid64": "/srv/lucid", "cflinuxfs2": "docker://h.test/cflinuxfs2:1", "here": ""}},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
	got, err = cellsOf(t, "", `--cells=[{name: one}]`, `--preloaded-rootfses={"lucid64":"/path/to/lucid64"}`)
	if err != nil || len(got.Cells) != 1 || got.Preloaded["lucid64"] != "/path/to/lucid64" {
		t.Errorf("got %+v, %v; want what the flags say", got, err)
	}
	for text, args := range map[string][]string{"cells: none": nil, "": {"--cells", "none"}} {
		if got, err := cellsOf(t, text, append(args, "--kubernetes", "edge=/k")...); err != nil || !got.None || len(got.Cells) > 0 {
			t.Errorf("%q %v: got %+v, %v; want no cells", text, args, got, err)
		}
	}
}

func TestBadCells(t *testing.T) {
	for text, want := range map[string]string{
		"cells: [{name: a, memory: 512}]":      `invalid size "512": give 1M or more, like 512M or 4G`,
		"cells: [{name: a, memory: lots}]":     `invalid size "lots": give 1M or more, like 512M or 4G`,
		"cells: [{name: a, colour: red}]":      "field colour not found",
		"cells: {name: a}":                     "cannot unmarshal",
		"cells: nothing":                       "cannot unmarshal",
		"cells: [{isnone: true}]":              "field isnone not found",
		"cells: [{name: a, tags: {a: b}}]":     "cannot unmarshal",
		"preloaded_rootfses: [[a]]":            "cannot unmarshal",
		"cells: [{name: a, containers: many}]": "cannot unmarshal",
	} {
		if _, err := cellsOf(t, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v; want an error with %q", text, err, want)
		}
	}
}

func FuzzCells(f *testing.F) {
	f.Add("[{name: a, tags: [x], memory: 1G}]")
	f.Add("[{preloaded_rootfses: [a]}]")
	f.Fuzz(func(t *testing.T, text string) {
		var c commandLine
		parser, err := newParser(&c)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parser.Parse([]string{"serve", "--cells=" + text}); err != nil {
			return
		}
		for _, e := range c.Serve.Config.Cells {
			if e.MemoryMB < 0 || e.DiskMB < 0 {
				t.Errorf("got %+v", e)
			}
		}
	})
}
