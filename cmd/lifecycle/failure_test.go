package main

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// aliasBomb is 5 MB of text once its aliases are followed.
const aliasBomb = `a: &a [x, x, x, x, x, x, x, x, x]
b: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a]
c: &c [*b, *b, *b, *b, *b, *b, *b, *b, *b]
d: &d [*c, *c, *c, *c, *c, *c, *c, *c, *c]
e: &e [*d, *d, *d, *d, *d, *d, *d, *d, *d]
f: &f [*e, *e, *e, *e, *e, *e, *e, *e, *e]
g: [*f, *f, *f, *f, *f, *f, *f, *f, *f]
`

const failing = "#!/bin/sh\nexit 7\n"

// broken is a complete buildpack with one script replaced, or removed if
// text is empty.
func broken(name, text string) map[string]string {
	files := named("a", map[string]string{"bin/finalize*": script(""), "bin/release*": "#!/bin/sh\necho 'default_process_types: {web: x}'\n"})
	if name != "" {
		files[name] = text
	}
	maps.DeleteFunc(files, func(_, v string) bool { return v == "" })
	return files
}

func TestFailures(t *testing.T) {
	whole := broken("", "")
	tests := []struct {
		name   string
		first  map[string]string // buildpack a
		second map[string]string // buildpack b, when there are two
		detect bool
		files  map[string]string
		code   int
		want   string
		result bool // result.json is written all the same
	}{
		{name: "nobody detects", first: broken("bin/detect*", failing), detect: true, code: 222, want: "None of the buildpacks detected a compatible application"},
		{name: "supplier fails", first: broken("bin/supply*", failing), second: whole, code: 225, want: "Failed to run all supply scripts: exit status 7", result: true},
		{name: "supplier cannot supply", first: broken("bin/supply*", ""), second: whole, code: 225, want: "Error: one of the buildpacks chosen to supply dependencies does not support multi-buildpack apps"},
		{name: "last supply fails", first: broken("bin/supply*", failing), code: 223, want: "Failed to compile droplet: Failed to run all supply scripts: exit status 7", result: true},
		{name: "finalize fails", first: broken("bin/finalize*", failing), code: 223, want: "Failed to compile droplet: Failed to run finalize script: exit status 7", result: true},
		{name: "compile fails", first: map[string]string{"bin/compile*": failing}, code: 223, want: "Failed to compile droplet: exit status 7", result: true},
		{name: "release fails", first: broken("bin/release*", failing), code: 224, want: "Failed to build droplet release: exit status 7", result: true},
		{name: "release is no YAML", first: broken("bin/release*", "#!/bin/sh\necho '\"'\n"), code: 224, want: "Failed to build droplet release: buildpack's release output invalid", result: true},
		{name: "bad Procfile", first: whole, files: map[string]string{"Procfile": "web\n"}, code: 1, want: "Failed to read command from Procfile: invalid YAML", result: true},
		{name: "huge Procfile", first: whole, files: map[string]string{"Procfile": "web: " + strings.Repeat("x", 2<<20)}, code: 1, want: "Failed to read command from Procfile: Procfile is larger than", result: true},
		{name: "Procfile of aliases", first: whole, files: map[string]string{"Procfile": aliasBomb}, code: 1, want: "Failed to read command from Procfile: invalid YAML", result: true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := newStaging(t, test.files)
			s.addBuildpack("a", test.first)
			order := "-buildpackOrder=a"
			if test.second != nil {
				s.addBuildpack("b", test.second)
				order = "-buildpackOrder=a,b"
			}
			args := []string{order, "-skipDetect"}
			if test.detect {
				args = args[:1]
			}
			code, out := s.build(args...)
			if code != test.code || !strings.Contains(out, test.want) {
				t.Errorf("got %d %q; want %d and %q", code, out, test.code, test.want)
			}
			if _, err := os.Stat(s.path("result.json")); (err == nil) != test.result {
				t.Errorf("result.json: %v; want it written: %v", err, test.result)
			}
			if left, _ := filepath.Glob(s.path("contents*")); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

func TestBadFlags(t *testing.T) {
	for arg, want := range map[string]string{"-skipDetect": "missing flag: -buildpackOrder", "-nonsense": "flag provided but not defined"} {
		s := newStaging(t, nil)
		if code, out := s.build(arg); code != 1 || !strings.Contains(out, want) {
			t.Errorf("%s: got %d %q; want 1 and %q", arg, code, out, want)
		}
	}
}
