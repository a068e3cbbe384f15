package push

import (
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
)

func TestManifestPath(t *testing.T) {
	for path, want := range map[string]string{
		"": "outer", ".": "outer", "publish": "inner", "./publish/": "inner",
		"gone": `path "gone" of manifest.yml does not exist`, "index.html": "is a file", "../other": "leads out", "/etc": "leads out",
	} {
		files := fstest.MapFS{"index.html": {Data: []byte("outer")}, "publish/index.html": {Data: []byte("inner")}, "manifest.yml": {Data: []byte("applications:\n- name: a\n")}}
		if path != "" {
			files["manifest.yml"].Data = []byte("applications:\n- name: a\n  path: " + path + "\n")
		}
		a := App{Name: "x", Files: files}
		_, err := a.manifest()
		if err != nil {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %v; want %s", path, err, want)
			}
			continue
		}
		if got, err := fs.ReadFile(a.Files, "index.html"); err != nil || string(got) != want {
			t.Errorf("%s: got %s, %v; want %s", path, got, err, want)
		}
	}
}

// TestManifest reads the manifest as the API does, so that it gets the same when
// the manifest is sent to it as it is.
func TestManifest(t *testing.T) {
	for text, want := range map[string]string{
		"": "applications:\n    - default-route: true\n      name: x\n",
		"applications:\n- no-route: yes\n  env: {A: on, NO: \"off\"}\n": "applications:\n    - env:\n        A: true\n        \"NO\": \"off\"\n      name: x\n      no-route: true\n",
	} {
		a := App{Name: "x", Files: fstest.MapFS{"manifest.yml": {Data: []byte(text)}}}
		if got, err := a.manifest(); err != nil || string(got) != want {
			t.Errorf("%q: got %q, %v; want %q", text, got, err, want)
		}
	}
}
