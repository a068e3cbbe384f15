package gitpush

import (
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

func TestManifestOf(t *testing.T) {
	for name, c := range map[string]struct {
		text, want, path string // want: the applied manifest's one app
	}{
		"none":            {"", "default-route: true\nname: web\n", "."},
		"another name":    {"applications:\n- name: other\n  memory: 64M\n", "default-route: true\nmemory: 64M\nname: web\n", "."},
		"routes":          {"applications:\n- routes: [{route: a.b}]\n", "name: web\nroutes:\n    - route: a.b\n", "."},
		"no route":        {"applications:\n- no-route: true\n", "name: web\nno-route: true\n", "."},
		"one of two":      {"applications:\n- name: a\n- name: web\n  path: sub\n", "default-route: true\nname: web\n", "sub"},
		"old booleans":    {"applications:\n- no-route: yes\n  env: {A: \"no\"}\n", "env:\n    A: \"no\"\nname: web\nno-route: true\n", "."},
		"an empty entry":  {"applications:\n-\n", "default-route: true\nname: web\n", "."},
		"with an anchor":  {"x: &x {memory: 32M}\napplications:\n- <<: *x\n  name: web\n", "default-route: true\nmemory: 32M\nname: web\n", "."},
		"a path of a dot": {"applications:\n- path: ./\n", "default-route: true\nname: web\n", "./"},
	} {
		w, err := manifestOf(c.text, "web")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var m struct{ Applications []map[string]any }
		if err := yaml.Unmarshal(w.manifest, &m); err != nil || len(m.Applications) != 1 {
			t.Errorf("%s: got %s, %v", name, w.manifest, err)
			continue
		}
		got, err := yaml.Marshal(m.Applications[0])
		if err != nil || string(got) != c.want || w.path != c.path {
			t.Errorf("%s: got %q, path %q, %v; want %q, %q", name, got, w.path, err, c.want, c.path)
		}
	}
	for text, want := range map[string]string{
		"applications: [": "manifest.yml: yaml", "applications:\n- name: ((n))\n": "no --var", "applications:\n- {name: a}\n- {name: b}\n": "one of a, b",
		"applications:\n- docker: {image: a}\n": "docker image",
	} {
		if _, err := manifestOf(text, "web"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v; want %q", text, err, want)
		}
	}
}

func TestOneLine(t *testing.T) {
	for text, want := range map[string]string{
		"a\nb\r\n c": "a b c", "\x1b[31mred\x00": "[31mred", strings.Repeat("é", maxReason): strings.Repeat("é", maxReason/2) + "…",
	} {
		if got := oneLine(text); got != want {
			t.Errorf("%q: got %q", text, got)
		}
	}
}
