package create

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cupola/server/bosh/tarball"
	"cupola/store/blob"
)

// write makes files below a new directory.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "demo")
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func sound() map[string]string {
	return map[string]string{
		"config/final.yml":           "name: demo",
		"jobs/web/spec":              "name: web\ntemplates: {run.erb: bin/run}\npackages: [app]",
		"jobs/web/monit":             "",
		"jobs/web/templates/run.erb": "x",
		"packages/app/spec":          "name: app\ndependencies: [lib]\nfiles: ['app/**/*', 'data/*.{txt,md}']\nexcluded_files: ['**/*_test.c']",
		"packages/app/packaging":     "make",
		"packages/lib/spec":          "name: lib",
		"packages/lib/packaging":     "true",
		"src/app/main.c":             "main",
		"src/app/deep/er.c":          "er",
		"src/app/main_test.c":        "test",
		"blobs/data/a.txt":           "a",
		"blobs/data/b.bin":           "b",
		"blobs/app/main.c":           "hidden by src",
	}
}

func TestCreate(t *testing.T) {
	dir := write(t, sound())
	if err := os.Symlink("main.c", filepath.Join(dir, "src/app/link.c")); err != nil {
		t.Fatal(err)
	}
	d, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range d.packages[0].files {
		names = append(names, f.at)
	}
	if got, want := strings.Join(names, " "), "app/deep/er.c app/link.c app/main.c data/a.txt packaging"; got != want {
		t.Errorf("got the files %s; want %s", got, want)
	}
	var out, again bytes.Buffer
	for _, to := range []*bytes.Buffer{&out, &again} {
		if err := d.Write(Identity{Name: "demo", Version: "0+dev.1", CommitHash: "abc", Uncommitted: true}, to); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(out.Bytes(), again.Bytes()) {
		t.Error("the same directory makes another tarball")
	}
	blobs, err := blob.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	r, err := tarball.Read(t.Context(), &out, tarball.Want{}, blobs)
	if err != nil {
		t.Fatal(err)
	}
	if r.Package("app").Fingerprint != d.Fingerprints()["packages/app"] || r.Job("web").Fingerprint != d.Fingerprints()["jobs/web"] || r.CommitHash != "abc" || !r.Uncommitted {
		t.Errorf("got %+v", r)
	}
}

// TestFingerprint holds the algorithm: SHA-256 of "v2" and for each file its name,
// digest and mode, and then the names of dependencies.
func TestFingerprint(t *testing.T) {
	d, err := Open(write(t, sound()))
	if err != nil {
		t.Fatal(err)
	}
	want := strings.TrimPrefix(digest([]byte("v2packaging"+digest([]byte("true")))), "sha256:")
	if got := d.Fingerprints()["packages/lib"]; got != want {
		t.Errorf("got %s; want %s", got, want)
	}
	want = strings.TrimPrefix(digest([]byte("v2app/deep/er.c"+digest([]byte("er"))+"100644app/main.c"+digest([]byte("main"))+"100644data/a.txt"+digest([]byte("a"))+"100644packaging"+digest([]byte("make"))+"lib")), "sha256:")
	if got := d.Fingerprints()["packages/app"]; got != want {
		t.Errorf("got %s; want %s", got, want)
	}
}

func TestOpenRefuses(t *testing.T) {
	for name, c := range map[string]struct{ file, text, want string }{
		"no release":    {"config/final.yml", "\x00", "it has no config/final.yml"},
		"locked":        {"packages/app/spec.lock", "name: app", "has a spec.lock: the source of the package is in the release's blobstore"},
		"pre_packaging": {"packages/app/pre_packaging", "", "has a pre_packaging script"},
		"name":          {"packages/app/spec", "name: other", `the directory is called "app", and the spec says "other"`},
		"no files":      {"packages/app/spec", "name: app\nfiles: ['none/*']", "missing files for pattern 'none/*'"},
		"no blob":       {"config/blobs.yml", "data/missing.txt: {size: 1, sha: x}", "the blob data/missing.txt of config/blobs.yml is not in blobs"},
		"no template":   {"jobs/web/spec", "name: web\ntemplates: {gone: bin/gone}", "gone"},
		"no packaging":  {"packages/bare/spec", "name: bare", "expected to find"},
	} {
		t.Run(name, func(t *testing.T) {
			files := sound()
			files[c.file] = c.text
			dir := write(t, files)
			if name == "no release" {
				if err := os.Remove(filepath.Join(dir, c.file)); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v; want %q", err, c.want)
			}
		})
	}
}

func FuzzGlob(f *testing.F) {
	f.Add("a/**/*.{c,h}", "a/b/c.h")
	f.Add("[a", "a")
	f.Fuzz(func(t *testing.T, pattern, name string) {
		if rule, err := glob(pattern); err == nil {
			rule.MatchString(name)
		}
	})
}
