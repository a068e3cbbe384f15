package buildpack

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestGodeps builds an app from before Go's modules, with this machine's Go.
func TestGodeps(t *testing.T) {
	tool, err := exec.LookPath("go")
	if err != nil {
		t.Skip("needs go")
	}
	app, cache := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{
		"Godeps/Godeps.json":                           `{"ImportPath": "example.com/me/shop", "Deps": []}`,
		"Godeps/_workspace/src/example.com/lib/lib.go": "package lib\n\nconst Name = \"lib\"\n",
		"main.go":        "package main\n\nimport (\n\t\"example.com/lib\"\n\t\"example.com/me/shop/goods\"\n)\n\nfunc main() { println(lib.Name, goods.Name) }\n",
		"goods/goods.go": "package goods\n\nconst Name = \"goods\"\n",
	} {
		file := filepath.Join(app, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if !detectGo(app) {
		t.Error("the app is not detected")
	}
	var log bytes.Buffer
	s := &stage{app: app, cache: cache, log: &log}
	b := goBuild{stage: s, tool: tool, env: s.goEnvironment()}
	end, err := b.useGodeps()
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	programs, err := b.packages()
	if err != nil || len(programs) != 1 || programs[0].program() != "shop" {
		t.Fatalf("got %+v, %v\n%s", programs, err, &log)
	}
	if command, err := b.compile(programs); err != nil || command != "./bin/shop" {
		t.Fatalf("got %q, %v\n%s", command, err, &log)
	}
	out, err := exec.CommandContext(t.Context(), filepath.Join(app, "bin", "shop")).CombinedOutput()
	if err != nil || string(out) != "lib goods\n" {
		t.Errorf("got %q, %v", out, err)
	}
}

func TestGodepsFile(t *testing.T) {
	for text, want := range map[string]string{
		`{"ImportPath": "../../etc"}`: "is not an import path", `{"ImportPath": ""}`: "is not an import path", `{"ImportPath": "/etc"}`: "is not an import path", `{`: "Godeps/Godeps.json: ",
	} {
		app := t.TempDir()
		if err := os.Mkdir(filepath.Join(app, "Godeps"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(app, godepsFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		b := goBuild{stage: &stage{app: app}}
		if _, err := b.useGodeps(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v; want %q", text, err, want)
		}
	}
	d := godeps{ImportPath: "a.b/c", Packages: []string{".", "./...", "./cmd/x", "d.e/f"}}
	if got, want := d.patterns(), []string{"a.b/c", "a.b/c/...", "a.b/c/cmd/x", "d.e/f"}; !slices.Equal(got, want) {
		t.Errorf("got %v; want %v", got, want)
	}
}
