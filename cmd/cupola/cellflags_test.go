package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"cupola/server"
)

// cellsOf is the configuration that a file makes.
func cellsOf(t testing.TB, text string, args ...string) (server.Config, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "cupola.yml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var c cli
	parser, err := newParser(&c, io.Discard, io.Discard, func(int) {})
	if err != nil {
		t.Fatal(err)
	}
	_, err = parser.Parse(append([]string{"--config", file, "serve"}, args...))
	var conf server.Config
	c.Serve.apply(&conf)
	return conf, err
}

func TestCellsFromTheConfigurationFile(t *testing.T) {
	got, err := cellsOf(t, `
preloaded_rootfses: [minifs]
rootfs_providers: [docker]
cells:
- {name: one, tags: [Staging, skynet], memory: 512M, disk: 2G, containers: 7}
- name: two
  preloaded_rootfses: {lucid64: /srv/lucid, cflinuxfs2: "docker://h.test/cflinuxfs2:1", here: }
  rootfs_providers: []
`)
	if err != nil {
		t.Fatal(err)
	}
	want := server.Config{Preloaded: map[string]string{"minifs": ""}, Providers: []string{"docker"}, Cells: []server.CellConfig{
		{Name: "one", Tags: []string{"Staging", "skynet"}, MemoryMB: 512, DiskMB: 2048, Containers: 7},
		{Name: "two", Providers: []string{}, Preloaded: map[string]string{"lucid64": "/srv/lucid", "cflinuxfs2": "docker://h.test/cflinuxfs2:1", "here": ""}},
	}}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(server.Config{}, "Manager")); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
	got, err = cellsOf(t, "", `--cells=[{name: one}]`, `--preloaded-rootfses={"lucid64":"/path/to/lucid64"}`)
	if err != nil || len(got.Cells) != 1 || got.Preloaded["lucid64"] != "/path/to/lucid64" {
		t.Errorf("got %+v, %v; want what the flags say", got, err)
	}
}

func TestBadCells(t *testing.T) {
	for text, want := range map[string]string{
		"cells: [{name: a, memory: 512}]":      `invalid size "512": give 1M or more, like 512M or 4G`,
		"cells: [{name: a, memory: lots}]":     `invalid size "lots": give 1M or more, like 512M or 4G`,
		"cells: [{name: a, colour: red}]":      "field colour not found",
		"cells: {name: a}":                     "cannot unmarshal",
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
		var c cli
		parser, err := newParser(&c, io.Discard, io.Discard, func(int) {})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parser.Parse([]string{"serve", "--cells=" + text}); err != nil {
			return
		}
		for _, e := range c.Serve.Cells {
			if e.Memory < 0 || e.Disk < 0 {
				t.Errorf("got %+v", e)
			}
		}
	})
}
