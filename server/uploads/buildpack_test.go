package uploads

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestBuildpack(t *testing.T) {
	compile := entry{"bin/compile", "#!/bin/sh", 0o755}
	for _, c := range []struct {
		name    string
		entries []entry
		stack   string
		want    string // part of the error, "" for none
	}{
		{"plain", []entry{compile}, "", ""},
		{"in a directory", []entry{{"bp-1.0/bin/supply", "", 0o755}}, "", ""},
		{"with a stack", []entry{compile, {"manifest.yml", "language: x\nstack: cflinuxfs4\n", 0o644}}, "cflinuxfs4", ""},
		{"no programs", []entry{{"lib/x", "", 0o644}}, "", ""},
		{"broken manifest", []entry{compile, {"manifest.yml", "stack: [", 0o644}}, "", "buildpack manifest is not valid"},
		{"large manifest", []entry{compile, {"manifest.yml", strings.Repeat("#", maxManifest+1), 0o644}}, "", "buildpack manifest is too large"},
		{"dots", []entry{compile, {"../x", "", 0o644}}, "", ""}, // staging fails
	} {
		stack, err := Buildpack(zipOf(t, c.entries...))
		if c.want == "" && err != nil || c.want != "" && (!IsInvalid(err) || !strings.Contains(err.Error(), c.want)) || stack != c.stack {
			t.Errorf("%s: got %q, %v; want %q, %q", c.name, stack, err, c.stack, c.want)
		}
	}
}

func FuzzBuildpack(f *testing.F) {
	z := zipOf(f, entry{"bin/compile", "b", 0o644}, entry{"manifest.yml", "stack: a", 0o644})
	data, _ := os.ReadFile(z.Name())
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		name := filepath.Join(t.TempDir(), "z")
		os.WriteFile(name, data, 0o600)
		in, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		if _, err := Buildpack(in); err != nil && !IsInvalid(err) {
			t.Errorf("got %v; want it valid or invalid", err)
		}
	})
}
