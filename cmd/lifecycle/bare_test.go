package main

import (
	"archive/zip"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cupola/runtime/contract"
	"cupola/runtime/lifecycle"
)

// The system buildpacks' archives, as the daemon unpacks them, must stage
// where there is no shell and no userland at all.
func TestStagesInBareRoot(t *testing.T) {
	if os.Getenv("CUPOLA_TEST_ROOT") != "1" {
		t.Skip("needs CUPOLA_TEST_ROOT=1 and root")
	}
	root := bareRoot(t)
	writeFiles(t, filepath.Join(root, "tmp/app"), map[string]string{"Staticfile": "", "index.html": "bare"})
	var order []string
	for _, b := range lifecycle.Buildpacks() {
		unzip(t, b.Zip, filepath.Join(root, "tmp/buildpacks", contract.BuildpackDir(b.Name)))
		order = append(order, b.Name)
	}
	bare := place{root, contract.ProgramDir, "/tmp"}
	env := []string{"PATH=/bin", "CF_STACK=minifs", "HOME=/home/vcap"}
	code, out := bare.run(t, env, []string{"builder", "-buildpackOrder=" + strings.Join(order, ",")})
	if code != 0 || !strings.Contains(out, "-----> staticfile 1.0.0\n") {
		t.Fatalf("staging: got %d %q", code, out)
	}
	for _, name := range []string{"droplet", "output-cache", "result.json"} {
		if info, err := os.Stat(filepath.Join(root, "tmp", name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: got %v, %v; want it written", name, info, err)
		}
	}
	// A language's toolchain is what minifs does not have.
	writeFiles(t, filepath.Join(root, "tmp/app"), map[string]string{"package.json": "{}"})
	code, out = bare.run(t, env, []string{"builder", "-skipDetect", "-buildpackOrder=nodejs_buildpack"})
	if code != 223 || !strings.Contains(out, "**ERROR** no node in stack 'minifs': push with -s and a stack that has it") {
		t.Errorf("staging Node.js: got %d %q; want 223 and the fix", code, out)
	}
}

// unzip writes an archive's files below dir.
func unzip(t *testing.T, data []byte, dir string) {
	t.Helper()
	r, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range r.File {
		in, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, f.Name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, text, f.Mode()); err != nil {
			t.Fatal(err)
		}
	}
}
