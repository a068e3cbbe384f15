package builder

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestExplain(t *testing.T) {
	for want, names := range map[string][]string{
		"add an empty file Staticfile":               {"index.html", "style.css"},
		"add a requirements.txt, which may be empty": {"app.py"},
		"a Django app":         {"manage.py", "x.py"},
		"add a package.json":   {"server.js", "index.html"},
		"add a go.mod":         {"main.go"},
		"--docker-image IMAGE": {"Dockerfile", "app.py"},
		"the Procfile starts a program that neither": {"Procfile", "app.py"},
		"cf push -p app":                                           {"app/main.go", "manifest.yml"},
		"the app's directory was empty":                            {".cfignore"},
		"server is not a program: chmod +x it":                     {"server"},
		"It has: a.html app.py":                                    {"a.html", "app.py"},
		"It has: 0 1 10 11 12 13 14 15 16 17 2 3 and 6 more":       strings.Fields("0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17"),
		"python_buildpack       looks for requirements.txt, setup": {"readme"},
	} {
		dir := t.TempDir()
		for _, name := range names {
			if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		var log bytes.Buffer
		b := &builder{config: config{buildDir: dir, order: []string{"python_buildpack", "mine"}}, stderr: &log}
		b.explain()
		if got := log.String(); !strings.Contains(got, want) || strings.Contains(got, "ruby_buildpack") {
			t.Errorf("got %q; want %q, and only of the buildpacks that were asked", got, want)
		}
	}
}
