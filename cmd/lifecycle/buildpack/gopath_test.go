package buildpack

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestGopath builds apps from before Go's modules, with this machine's Go.
func TestGopath(t *testing.T) {
	tool, err := exec.LookPath("go")
	if err != nil {
		t.Skip("needs go")
	}
	const (
		library = "package lib\n\nconst Name = \"lib\"\n"
		goods   = "package goods\n\nconst Name = \"goods\"\n"
		program = "package main\n\nimport (\n\t\"example.com/lib\"\n\t\"example.com/me/shop/goods\"\n)\n\nfunc main() { println(lib.Name, goods.Name) }\n"
		simple  = "package main\n\nimport \"example.com/lib\"\n\nfunc main() { println(lib.Name) }\n"
	)
	for name, test := range map[string]struct {
		files         map[string]string
		variable      string // GOPACKAGENAME
		program, says string
	}{
		"Godeps": {map[string]string{
			godepsFile: `{"ImportPath": "example.com/me/shop", "Deps": []}`, "Godeps/_workspace/src/example.com/lib/lib.go": library, "goods/goods.go": goods, "main.go": program,
		}, "", "shop", "lib goods\n"},
		"Godeps names a package": {map[string]string{
			godepsFile: `{"ImportPath": "example.com/me/shop", "Packages": ["./cmd/till"]}`, "vendor/example.com/lib/lib.go": library, "goods/goods.go": goods, "cmd/till/main.go": program,
			"cmd/other/main.go": program,
		}, "", "till", "lib goods\n"},
		"GOPACKAGENAME": {map[string]string{
			"vendor/example.com/lib/lib.go": library, "goods/goods.go": goods, "main.go": program,
		}, "example.com/me/shop", "shop", "lib goods\n"},
		"the only program is further down": {map[string]string{
			"vendor/example.com/lib/lib.go": library, "goods/goods.go": goods, "cmd/till/main.go": program,
		}, "example.com/me/shop", "till", "lib goods\n"},
		".godir":   {map[string]string{godirFile: "example.com/me/shop\n", "vendor/example.com/lib/lib.go": library, "goods/goods.go": goods, "main.go": program}, "", "shop", "lib goods\n"},
		"no name":  {map[string]string{"vendor/example.com/lib/lib.go": library, "main.go": simple}, "", unnamed, "lib\n"},
		"the name": {map[string]string{"vendor/example.com/lib/lib.go": library, "main.go": simple}, "main", "main", "lib\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("GOPACKAGENAME", test.variable)
			app := tree(t, test.files)
			if !detectGo(app) {
				t.Error("the app is not detected")
			}
			var log bytes.Buffer
			s := &stage{app: app, cache: t.TempDir(), log: &log}
			b := goBuild{stage: s, tool: tool, env: append(s.goEnvironment(), "GOCACHE="+goCache(t, tool))}
			end, err := b.useGopath()
			if err != nil {
				t.Fatal(err)
			}
			defer end()
			programs, err := b.packages()
			if err != nil || len(programs) != 1 || programs[0].program() != test.program {
				t.Fatalf("got %+v, %v\n%s", programs, err, &log)
			}
			if command, err := b.compile(programs); err != nil || command != "./bin/"+test.program {
				t.Fatalf("got %q, %v\n%s", command, err, &log)
			}
			out, err := exec.CommandContext(t.Context(), filepath.Join(app, "bin", test.program)).CombinedOutput()
			if err != nil || string(out) != test.says {
				t.Errorf("got %q, %v", out, err)
			}
		})
	}
}

// goCache is this machine's build cache, so that tests need not compile Go's standard library.
func goCache(t *testing.T, tool string) string {
	out, err := exec.CommandContext(t.Context(), tool, "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// TestGopathNames refuses import paths that lead elsewhere.
func TestGopathNames(t *testing.T) {
	for _, test := range []struct{ file, text, variable, want string }{
		{godepsFile, `{"ImportPath": "../../etc"}`, "", `Godeps/Godeps.json: ImportPath "../../etc" is not an import path`},
		{godepsFile, `{"ImportPath": ""}`, "", `"" is not an import path`},
		{godepsFile, `{"ImportPath": "/etc"}`, "a.b/c", `"/etc" is not an import path`},
		{godepsFile, `{`, "", "Godeps/Godeps.json: "},
		{godirFile, "../x", "", `.godir "../x" is not an import path`},
		{godirFile, "a.b/c", "a/../..", `GOPACKAGENAME "a/../.." is not an import path`},
	} {
		t.Setenv("GOPACKAGENAME", test.variable)
		b := goBuild{stage: &stage{app: tree(t, map[string]string{test.file: test.text})}}
		if _, err := b.useGopath(); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s %s %s: got %v; want %q", test.file, test.text, test.variable, err, test.want)
		}
	}
}
