package tarball

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha1"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"cupola/store/blob"
	"cupola/store/cf"
)

// entry is a file of a tar.
type entry struct {
	name, text string
	link       string // of a symbolic link
}

func tgz(t testing.TB, entries ...entry) string {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	w := tar.NewWriter(z)
	for _, e := range entries {
		h := &tar.Header{Name: e.name, Mode: 0o644, Size: int64(len(e.text)), Typeflag: tar.TypeReg}
		if e.link != "" {
			h.Typeflag, h.Linkname = tar.TypeSymlink, e.link
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(e.text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func sum1(text string) string   { return fmt.Sprintf("%x", sha1.Sum([]byte(text))) }
func sum256(text string) string { return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(text))) }

// parts are those of a sound release.
type parts struct{ job, lib, app, manifest string }

func sound(t testing.TB) parts {
	p := parts{
		job: tgz(t, entry{name: "./job.MF", text: "name: web\ntemplates: {run.erb: bin/run}\npackages: [app]\n"}, entry{name: "./templates/run.erb", text: "x"}),
		lib: tgz(t, entry{name: "packaging", text: "true"}),
		app: tgz(t, entry{name: "packaging", text: "make"}),
	}
	p.manifest = fmt.Sprintf(`
name: demo
version: 1.10
commit_hash: abc
uncommitted_changes: true
jobs: [{name: web, version: f-web, fingerprint: f-web, sha1: %q}]
packages:
- {name: app, version: f-app, fingerprint: f-app, sha1: %q, dependencies: [lib]}
- {name: lib, version: f-lib, fingerprint: f-lib, sha1: %q, dependencies: []}
`, sum1(p.job), "sha1:"+sum1(p.app)+";"+sum256(p.app), sum256(p.lib))
	return p
}

func (p parts) entries() []entry {
	return []entry{{name: "./release.MF", text: p.manifest}, {name: "./jobs/web.tgz", text: p.job}, {name: "packages/lib.tgz", text: p.lib}, {name: "packages/app.tgz", text: p.app}}
}

func blobs(t testing.TB) (*blob.Store, string) {
	t.Helper()
	dir := t.TempDir()
	s, err := blob.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return s, dir
}

// kept counts the files in a blob store.
func kept(t testing.TB, dir string) (n int) {
	t.Helper()
	err := filepath.WalkDir(dir, func(_ string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			n++
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestRead(t *testing.T) {
	s, dir := blobs(t)
	p := sound(t)
	file := tgz(t, p.entries()...)
	want := Want{Digest: sum1(file) + ";" + sum256(file), Name: "demo", Version: "1.10"}
	r, err := Read(t.Context(), strings.NewReader(file), want, s)
	if err != nil {
		t.Fatal(err)
	}
	digest := func(text string) string { return strings.TrimPrefix(sum256(text), "sha256:") }
	expected := &cf.BOSHRelease{Name: "demo", Version: "1.10", CommitHash: "abc", Uncommitted: true,
		Jobs: []cf.BOSHReleaseJob{{Name: "web", Fingerprint: "f-web", Digest: digest(p.job), Packages: []string{"app"}}},
		Packages: []cf.BOSHReleasePackage{
			{Name: "lib", Fingerprint: "f-lib", Digest: digest(p.lib)},
			{Name: "app", Fingerprint: "f-app", Digest: digest(p.app), Dependencies: []string{"lib"}},
		}}
	if d := cmp.Diff(expected, r, cmpopts.EquateEmpty()); d != "" {
		t.Error(d)
	}
	if n := kept(t, dir); n != 3 {
		t.Errorf("%d files are kept; want 3", n)
	}
}

func TestReadOfACompiledRelease(t *testing.T) {
	s, _ := blobs(t)
	p := sound(t)
	manifest := fmt.Sprintf(`{name: demo, version: "1", jobs: [{name: web, version: f, fingerprint: f, sha1: %s}],
compiled_packages: [{name: app, version: g, fingerprint: g, sha1: %s, stemcell: ubuntu-jammy/1.2, dependencies: []}]}`, sum1(p.job), sum1(p.app))
	file := tgz(t, entry{name: "jobs/web.tgz", text: p.job}, entry{name: "compiled_packages/app.tgz", text: p.app}, entry{name: "release.MF", text: manifest})
	r, err := Read(t.Context(), strings.NewReader(file), Want{}, s)
	if err != nil {
		t.Fatal(err)
	}
	if got := r.Package("app"); got.Digest != "" || got.CompiledFor("ubuntu-jammy") == "" || got.CompiledFor("ubuntu-noble") != "" {
		t.Errorf("got %+v", got)
	}
}

// refusals are tarballs with one fault each.
func refusals(t *testing.T) map[string]struct {
	entries []entry
	want    Want
	err     string
} {
	p := sound(t)
	change := func(old, now string) []entry {
		changed := p
		changed.manifest = strings.Replace(p.manifest, old, now, 1)
		return changed.entries()
	}
	out := tgz(t, entry{name: "../../etc/passwd", text: "x"})
	return map[string]struct {
		entries []entry
		want    Want
		err     string
	}{
		"no manifest":       {p.entries()[1:], Want{}, "Release manifest not found"},
		"two manifests":     {append(p.entries(), p.entries()[0]), Want{}, "release.MF is there twice"},
		"two archives":      {append(p.entries(), p.entries()[1]), Want{}, "jobs/web.tgz is there twice"},
		"a link":            {append(p.entries()[1:], entry{name: "release.MF", link: "/etc/passwd"}), Want{}, "release.MF in the release is not a regular file"},
		"digest of all":     {p.entries(), Want{Digest: sum1("x")}, "Release SHA1 does not match the expected SHA1"},
		"invalid digest":    {p.entries(), Want{Digest: "sha256:12"}, "invalid digest"},
		"another version":   {p.entries(), Want{Version: "2"}, "the tarball has the release 'demo/1.10', and 'demo/2' was expected"},
		"digest of a job":   {change(sum1(p.job), sum1("x")), Want{}, "job 'web': the sha1 is"},
		"digest of a part":  {change(sum256(p.app), sum256("x")), Want{}, "package 'app': the sha256 is"},
		"missing archive":   {p.entries()[:3], Want{}, "package 'app' is not in the tarball"},
		"missing package":   {change("name: app,", "name: other,"), Want{}, "package 'other' is not in the tarball"},
		"dependency":        {change("[lib]", "[gone]"), Want{}, "package 'app' depends on missing package 'gone'"},
		"cycle":             {change("dependencies: []", "dependencies: [app]"), Want{}, "package 'app' depends on itself: app -> lib -> app"},
		"name":              {change("name: demo", "name: ../demo"), Want{}, "invalid release name"},
		"version":           {change("1.10", "1/0"), Want{}, "invalid release version"},
		"name of a package": {change("name: lib", "name: a/b"), Want{}, "invalid name of a package"},
		"path out of a job": {append(change(sum1(p.job), sum1(out))[:1], entry{name: "jobs/web.tgz", text: out}), Want{}, "job 'web': ../../etc/passwd"},
	}
}

func TestReadRefuses(t *testing.T) {
	for name, c := range refusals(t) {
		t.Run(name, func(t *testing.T) {
			s, dir := blobs(t)
			_, err := Read(t.Context(), strings.NewReader(tgz(t, c.entries...)), c.want, s)
			if err == nil || !IsRefusal(err) || !strings.Contains(err.Error(), c.err) {
				t.Errorf("got %v; want a refusal with %q", err, c.err)
			}
			if n := kept(t, dir); n != 0 {
				t.Errorf("%d files are kept; want none", n)
			}
		})
	}
	s, _ := blobs(t)
	for _, text := range []string{"", "no tarball", tgz(t, sound(t).entries()...)[:100]} {
		if _, err := Read(t.Context(), strings.NewReader(text), Want{}, s); !IsRefusal(err) {
			t.Errorf("got %v; want a refusal", err)
		}
	}
}

func TestFetch(t *testing.T) {
	s, _ := blobs(t)
	file := tgz(t, sound(t).entries()...)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/r.tgz" {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write([]byte(file))
	}))
	defer server.Close()
	f := Fetcher{http.DefaultClient, s}
	if r, err := f.Fetch(t.Context(), server.URL+"/r.tgz", Want{Digest: sum1(file)}); err != nil || r.Name != "demo" {
		t.Errorf("got %+v, %v", r, err)
	}
	for _, url := range []string{server.URL + "/none", "file:///etc/passwd", "http://", "%"} {
		if _, err := f.Fetch(t.Context(), url, Want{}); !IsRefusal(err) {
			t.Errorf("%s: got %v; want a refusal", url, err)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(tgz(f, sound(f).entries()...)))
	f.Add([]byte("x"))
	s, _ := blobs(f)
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := Read(t.Context(), bytes.NewReader(text), Want{}, s)
		if err == nil && (r.Name == "" || r.Version == "") {
			t.Errorf("got %+v", r)
		}
	})
}
