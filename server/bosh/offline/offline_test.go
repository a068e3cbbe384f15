package offline

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cupola/server/bosh"
	"cupola/server/bosh/create"
	"cupola/server/bosh/erb"
	"cupola/server/bosh/manifest"
	"cupola/server/bosh/tree"
	"cupola/server/bosh/variables"
)

// write writes files below a directory.
func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		if err == nil {
			err = os.WriteFile(path, []byte(text), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// demo is the directory of a release, and its tarball.
func demo(t *testing.T) (dir, tarball string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "demo")
	write(t, dir, map[string]string{
		"config/final.yml":                "name: demo\n",
		"jobs/web/monit":                  "",
		"jobs/web/spec":                   "name: web\ntemplates: {web.conf.erb: config/web.conf}\nproperties: {greeting: {}, password: {}}\n",
		"jobs/web/templates/web.conf.erb": "<%= p('greeting') %> <%= p('password') %>\n",
	})
	d, err := create.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := d.Write(create.Identity{Name: "demo", Version: "1"}, &out); err != nil {
		t.Fatal(err)
	}
	tarball = filepath.Join(t.TempDir(), "demo.tgz")
	if err := os.WriteFile(tarball, out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir, tarball
}

const demoManifest = `name: demo
releases: [{name: demo, version: "1"%s}]
stemcells: [{alias: default, os: jammy, version: "1"}]
instance_groups:
- name: web
  instances: 2
  stemcell: default
  jobs: [{name: web, release: demo, properties: {greeting: hello, password: ((pw)), quarks: {bpm: {processes: []}}}}]
variables: [{name: pw, type: password}]
`

// render renders the manifest, and returns the files by their paths.
func render(t *testing.T, text string, f bosh.Filling, releases ...string) (map[string]string, error) {
	t.Helper()
	l, err := Open(t.Context(), releases)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(l.dir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is still there: %v", l.dir, err)
		}
	}()
	root, err := tree.LoadBOSH([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	made, err := l.Render(t.Context(), root, f, nil)
	if err != nil {
		return nil, err
	}
	files := map[string]string{}
	return files, made.Files(func(path string, f bosh.JobFile) error {
		files[path] = string(f.Content)
		return nil
	})
}

// TestReleases are read from a directory, a tarball and a URL alike.
func TestReleases(t *testing.T) {
	t.Parallel()
	dir, tarball := demo(t)
	// As a clone of a release has them: the packages' sources are elsewhere.
	write(t, dir, map[string]string{
		"packages/app/spec":      "name: app\nfiles: [app.tgz]\n",
		"packages/app/packaging": "",
		"packages/go/spec.lock":  "name: go\nfingerprint: 1\n",
	})
	// Releases share templates of jobs by links, like capi-release.
	shared, own := filepath.Join(dir, "shared.erb"), filepath.Join(dir, "jobs/web/templates/web.conf.erb")
	if err := errors.Join(os.Rename(own, shared), os.Symlink("../../../shared.erb", own)); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(tarball)
	if err != nil {
		t.Fatal(err)
	}
	digest := fmt.Sprintf("sha256:%x", sha256.Sum256(content))
	files := httptest.NewServer(http.FileServer(http.Dir(filepath.Dir(tarball))))
	defer files.Close()
	from := func(digest string) string {
		return fmt.Sprintf(demoManifest, ", url: "+files.URL+"/demo.tgz, sha1: '"+digest+"'")
	}
	want := map[string]string{"web/0/web/config/web.conf": "hello secret\n", "web/1/web/config/web.conf": "hello secret\n"}
	known := bosh.Filling{Existing: map[string]variables.Value{"pw": {Fields: map[string]string{"password": "secret"}}}}
	for text, releases := range map[string][]string{
		fmt.Sprintf(demoManifest, ""):        {dir},
		fmt.Sprintf(demoManifest, "") + "\n": {tarball},
		from(digest):                         nil,
	} {
		got, err := render(t, text, known, releases...)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%v, %v: %v (-want +got):\n%s", releases, text, err, diff)
		}
	}
	given := bosh.Filling{Given: tree.Map{"pw": "secret"}}
	if got, err := render(t, fmt.Sprintf(demoManifest, ""), given, dir); err != nil || !cmp.Equal(want, got) {
		t.Errorf("got %v, %v; want the given value", got, err)
	}
	for want, text := range map[string]string{
		"release 'demo/1' is not here: give its tarball or its directory with --release": fmt.Sprintf(demoManifest, ""),
		"release 'demo/1': Release SHA1 does not match the expected SHA1":                from("sha256:" + strings.Repeat("0", 64)),
		"release 'demo/2': the tarball has the release 'demo/1'":                         strings.Replace(from(digest), `version: "1", url`, `version: "2", url`, 1),
		"answers 404 Not Found": strings.Replace(from(digest), "demo.tgz", "none.tgz", 1),
	} {
		if _, err := render(t, text, known); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v; want %s", err, want)
		}
	}
	if _, err := render(t, strings.Replace(fmt.Sprintf(demoManifest, ""), `"1"`, `"7"`, 1), known, tarball); err == nil || !strings.Contains(err.Error(), "--release has version 1") {
		t.Errorf("got %v; want another version refused", err)
	}
	empty := t.TempDir()
	write(t, empty, map[string]string{"config/final.yml": "name: empty\n"})
	if _, err := Open(t.Context(), []string{empty}); err == nil || !strings.HasSuffix(err.Error(), "jobs: no such file or directory") {
		t.Errorf("got %v; want a directory without jobs refused", err)
	}
	if _, err := Open(t.Context(), []string{filepath.Dir(tarball)}); err == nil || !strings.Contains(err.Error(), "is not the directory of a release") {
		t.Errorf("got %v", err)
	}
}

type entry struct {
	name, text string
	kind       byte
	link       string
}

func tarOf(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, e := range entries {
		kind := e.kind
		if kind == 0 {
			kind = tar.TypeReg
		}
		err := w.WriteHeader(&tar.Header{Name: e.name, Typeflag: kind, Size: int64(len(e.text)), Mode: 0o640, Linkname: e.link, Uid: 5, Gid: 5})
		if err == nil {
			_, err = io.WriteString(w, e.text)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestImagesLayers holds that layers replace and remove what those below them have,
// and that nothing but jobs is unpacked.
func TestImagesLayers(t *testing.T) {
	t.Parallel()
	const a, b = jobsDir + "/a/", jobsDir + "/b/"
	layers := [][]byte{
		tarOf(t, entry{name: "var", kind: tar.TypeDir}, entry{name: a + "job.MF", text: "name: a\ntemplates: {x: x}"}, entry{name: a + "templates/x", text: "old"},
			entry{name: b + "job.MF", text: "name: b"}, entry{name: "usr/bin/sudo", text: "x"}, entry{name: "dev/sda", kind: tar.TypeBlock}),
		tarOf(t, entry{name: a + "templates/x", text: "new"}, entry{name: jobsDir + "/.wh.b"}, entry{name: "var/vcap/packages/.wh.x"}),
	}
	image := filepath.Join(t.TempDir(), "image.tar")
	archive := tarOf(t, entry{name: "manifest.json", text: `[{"Config":"c.json","Layers":["1.tar","2.tar"]}]`}, entry{name: "1.tar", text: string(layers[0])},
		entry{name: "2.tar", text: string(layers[1])}, entry{name: "c.json", text: fmt.Sprintf(`{"rootfs":{"diff_ids":["sha256:%x","sha256:%x"]}}`, sha256.Sum256(layers[0]), sha256.Sum256(layers[1]))})
	if err := os.WriteFile(image, archive, 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := Open(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	of := manifest.Image{Local: true, Reference: image}
	job, err := l.Job(t.Context(), of, "a")
	if err != nil || len(job.Templates) != 1 || string(job.Templates[0].Content) != "new" {
		t.Errorf("got %+v, %v", job, err)
	}
	if _, err := l.Job(t.Context(), of, "b"); err == nil || !strings.Contains(err.Error(), `job "b" is not in the release image: it has a`) {
		t.Errorf("got %v", err)
	}
	others, err := filepath.Glob(filepath.Join(l.dir, "image-*", "usr"))
	if err != nil || others != nil {
		t.Errorf("got %v, %v; want jobs alone", others, err)
	}
}

// FuzzLayer holds that no layer writes outside of its directory.
func FuzzLayer(f *testing.F) {
	f.Add(tarOf(f, entry{name: jobsDir + "/../../../../escaped", text: "x"}))
	f.Add(tarOf(f, entry{name: jobsDir + "/a", kind: tar.TypeSymlink, link: "/tmp"}, entry{name: jobsDir + "/a/escaped", text: "x"}))
	f.Add(tarOf(f, entry{name: jobsDir + "/a", kind: tar.TypeLink, link: "/etc/passwd"}))
	f.Add(tarOf(f, entry{name: "var", kind: tar.TypeSymlink, link: "/tmp"}, entry{name: jobsDir, kind: tar.TypeSymlink, link: "/etc"}, entry{name: jobsDir + "/x", text: "x"}))
	f.Fuzz(func(t *testing.T, layer []byte) {
		outer := t.TempDir()
		dir := filepath.Join(outer, "in")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		err := applyLayer(t.Context(), dir, bytes.NewReader(layer))
		entries, rerr := os.ReadDir(outer)
		if rerr != nil || len(entries) != 1 {
			t.Errorf("got %v beside the directory, %v (%v)", entries, rerr, err)
		}
	})
}

// TestRuby holds what is reported of a program that fails.
func TestRuby(t *testing.T) {
	t.Parallel()
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("needs sh")
	}
	ruby := run(sh, "-c")
	out, err := ruby(t.Context(), []byte("cat; echo out of luck >&2; exit 3"), []byte("input"))
	var ended erb.Ended
	if !errors.As(err, &ended) || string(out) != "input" || ended.Error() != "ruby: exit status 3: out of luck" {
		t.Errorf("got %q, %v", out, err)
	}
}
