package release

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"cupola/server/bosh/tree"
)

const nats = `
name: nats
description: a server
packages: [nats, golang]
templates:
  pre-start.erb: bin/pre-start
  nats.conf.erb: config/nats.conf
  bpm.yml.erb: config/bpm.yml
  tool: share/tool
provides:
- {name: nats, type: nats, properties: [nats.port]}
consumes:
- {name: nats, type: nats, optional: true}
properties:
  nats.port:
    description: The port
    default: 4222
  nats.user: {description: The user}
  nats.tls:
    default: {1: {true: [a, 2001-02-03, .inf, ~, 1.0]}}
  nats.nothing:
`

func natsImage() fstest.MapFS {
	file := func(content string, mode fs.FileMode) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte(content), Mode: mode}
	}
	return fstest.MapFS{
		jobsDir + "/nats/job.MF":                  file(nats, 0o644),
		jobsDir + "/nats/spec":                    file("templates: {a: b}", 0o644),
		jobsDir + "/nats/templates/pre-start.erb": file("#!/bin/sh", 0o644),
		jobsDir + "/nats/templates/nats.conf.erb": file("port: <%= p('nats.port') %>", 0o644),
		jobsDir + "/nats/templates/bpm.yml.erb":   file("processes: []", 0o600),
		jobsDir + "/nats/templates/tool":          file("tool", 0o755),
		jobsDir + "/old/spec":                     file("templates: []\nproperties: []\nprovides:\n", 0o644),
		jobsDir + "/.git/spec":                    file("", 0o644),
	}
}

func TestRead(t *testing.T) {
	got, err := Read(natsImage(), "nats")
	if err != nil {
		t.Fatal(err)
	}
	want := Job{
		Name: "nats", Packages: []string{"nats", "golang"},
		Templates: []Template{
			{"pre-start.erb", "bin/pre-start", []byte("#!/bin/sh"), 0o755},
			{"bpm.yml.erb", "config/bpm.yml", []byte("processes: []"), 0o640},
			{"nats.conf.erb", "config/nats.conf", []byte("port: <%= p('nats.port') %>"), 0o640},
			{"tool", "share/tool", []byte("tool"), 0o750},
		},
		Provides: []Provided{{"nats", "nats", []string{"nats.port"}}},
		Consumes: []Consumed{{"nats", "nats", true}},
		Order:    []string{"nats.port", "nats.user", "nats.tls", "nats.nothing"},
		Properties: map[string]Property{
			"nats.port": {Description: "The port", Default: 4222}, "nats.user": {Description: "The user"}, "nats.nothing": {},
			"nats.tls": {Default: map[string]any{"1": map[string]any{"true": []any{"a", "2001-02-03", ".inf", nil, 1.0}}},
				Order: &tree.Order{Keys: []string{"1"}, Within: map[string]*tree.Order{"1": {Keys: []string{"true"}}}}},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	old, err := Read(natsImage(), "old")
	if diff := cmp.Diff(Job{Name: "old", Properties: map[string]Property{}}, old); diff != "" || err != nil {
		t.Error(diff, err)
	}
}

func TestReadNamesTheJobsThereAre(t *testing.T) {
	for name, want := range map[string]string{
		"redis": `job "redis" is not in the release image: it has nats, old`,
		"../x":  `job name "../x" is not made of letters, digits, _, . and -`,
	} {
		if _, err := Read(natsImage(), name); err == nil || err.Error() != want {
			t.Errorf("got %v; want %s", err, want)
		}
	}
	if _, err := Read(fstest.MapFS{}, "a"); err == nil || err.Error() != `job "a" is not in the release image: it has none` {
		t.Errorf("got %v", err)
	}
}

func TestParseSpecRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"templates: {a: ../../../etc/passwd}":                "would be written to",
		"templates: {a: /etc/passwd}":                        "would be written to",
		"templates: {a: bin/./x}":                            "would be written to",
		`templates: {a: "bin/x\n"}`:                          "would be written to",
		`templates: {a: "bin/\u0000"}`:                       "would be written to",
		"templates: {a: }":                                   "would be written to",
		"templates: {../a: b}":                               "is not a path within templates",
		"templates: {a: x, b: x}":                            `two templates would be written to "x"`,
		"templates: {a: x, b: x/y/z}":                        `"x/y/z" would lie in "x", which is a file`,
		"templates: [a]":                                     "cannot unmarshal",
		"provides: [{name: a}]":                              "provided link without name or type",
		"consumes: [{name: a, type: b}, {name: a, type: c}]": `consumed link "a" is there twice`,
		"[":                                 "spec: ",
		strings.Repeat("#", maxSpecBytes+1): "at most 1048576 are read",
	} {
		_, err := ParseSpec("j", []byte(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.50s: got %v; want %s", text, err, want)
		}
	}
	var many strings.Builder
	many.WriteString("templates:\n")
	for i := range maxTemplates + 1 {
		fmt.Fprintf(&many, "  t%d: d%d\n", i, i)
	}
	if _, err := ParseSpec("j", []byte(many.String())); err == nil {
		t.Error("any number of templates is read")
	}
}

// TestReadRefusesWhatLeadsOut has an image with links to the host's files and
// with things that are no files.
func TestReadRefusesWhatLeadsOut(t *testing.T) {
	outside, dir := t.TempDir(), t.TempDir()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	secret := filepath.Join(outside, "secret")
	must(os.WriteFile(secret, []byte("templates: {}"), 0o600))
	job := func(name, spec string) string {
		at := filepath.Join(dir, jobsDir, name)
		must(os.MkdirAll(filepath.Join(at, "templates"), 0o755))
		if spec != "" {
			must(os.WriteFile(filepath.Join(at, "job.MF"), []byte(spec), 0o644))
		}
		return at
	}
	const one = "templates: {a: b}"
	must(os.Symlink(secret, filepath.Join(job("spec", ""), "job.MF")))
	must(os.Symlink(secret, filepath.Join(job("absolute", one), "templates", "a")))
	relative, err := filepath.Rel(filepath.Join(dir, jobsDir, "relative", "templates"), secret)
	must(err)
	must(os.Symlink(relative, filepath.Join(job("relative", one), "templates", "a")))
	must(syscall.Mkfifo(filepath.Join(job("fifo", one), "templates", "a"), 0o644))
	must(os.Mkdir(filepath.Join(job("dir", one), "templates", "a"), 0o755))
	job("missing", one)
	must(os.WriteFile(filepath.Join(job("large", one), "templates", "a"), make([]byte, maxTemplateBytes+1), 0o644))
	must(os.Symlink("real", filepath.Join(job("inside", one), "templates", "a")))
	must(os.WriteFile(filepath.Join(dir, jobsDir, "inside", "templates", "real"), []byte("x"), 0o644))
	must(os.Symlink(outside, filepath.Join(dir, jobsDir, "linked")))

	root, err := os.OpenRoot(dir)
	must(err)
	defer root.Close()
	for name, want := range map[string]string{
		"spec": "escapes", "absolute": "escapes", "relative": "escapes", "fifo": "is not a regular file", "dir": "is not a regular file",
		"missing": "no such file", "large": "has more than 2097152 bytes", "linked": "escapes",
	} {
		if _, err := Read(root.FS(), name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v; want %s", name, err, want)
		}
	}
	if got, err := Read(root.FS(), "inside"); err != nil || string(got.Templates[0].Content) != "x" {
		t.Errorf("got %v, %v; want a link within the image followed", got, err)
	}
	if slices.Contains(names(root.FS()), "linked") {
		t.Error("a link is listed as a job")
	}
}

func FuzzParseSpec(f *testing.F) {
	f.Add([]byte(nats))
	f.Add([]byte("templates: {a: &x b, c: *x}\nproperties: {<<: {a: {default: {? [1]: 2}}}}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		job, err := ParseSpec("j", text)
		if err != nil {
			return
		}
		for _, tmpl := range job.Templates {
			if !filepath.IsLocal(tmpl.Source) || !filepath.IsLocal(tmpl.Destination) {
				t.Errorf("%q to %q is let through", tmpl.Source, tmpl.Destination)
			}
		}
	})
}
