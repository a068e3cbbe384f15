package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cupola/runtime/contract"
)

// contents reads a directory: "mode content" by name.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		var text []byte
		if d.Type()&fs.ModeSymlink != 0 {
			var target string
			target, err = os.Readlink(name)
			text = []byte(target)
		} else {
			text, err = os.ReadFile(name)
		}
		files[rel] = fmt.Sprintf("%v %s", info.Mode(), text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// nothingLeft fails the test if it leaves a temporary file.
func nothingLeft(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	t.Cleanup(func() {
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("left behind: %v, %v", left, err)
		}
	})
}

func zipOf(t *testing.T, name, content string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	f, err := w.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(f, content); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestZip(t *testing.T) {
	nothingLeft(t)
	good := zipOf(t, "bin/detect", "#!/bin/sh\n")
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/good.zip":
			w.Write(good)
		case "/moved.zip":
			http.Redirect(w, r, "/good.zip", http.StatusFound)
		case "/bad.zip":
			io.WriteString(w, "not a zip")
		case "/damaged.zip":
			w.Write(good[:len(good)-5])
		case "/evil.zip":
			w.Write(zipOf(t, "../evil", ""))
		case "/large.zip":
			w.Header().Set("Transfer-Encoding", "chunked")
			w.Write(make([]byte, 5000))
		case "/broken.zip":
			w.Header().Set("Content-Length", "1000")
			w.Write(good[:50])
		default:
			http.Error(w, "SECRET", http.StatusNotFound)
		}
	}))
	defer srv.Close()
	for _, c := range []struct{ path, err string }{
		{"/good.zip", ""},
		{"/good.zip#ignored", ""},
		{"/moved.zip", ""},
		{"/bad.zip", "it is not a valid zip file"},
		{"/damaged.zip", "archive is damaged: zip: not a valid zip file"},
		{"/evil.zip", `archive entry "../evil" climbs out of the archive`},
		{"/large.zip", "it has more than 4096 bytes"},
		{"/broken.zip", "the download broke off after 50 bytes: unexpected EOF"},
		{"/absent.zip", "404 Not Found"},
	} {
		t.Run(c.path, func(t *testing.T) {
			f, dir := newFetcher(), t.TempDir()
			f.bytes = 4096
			size, err := f.fetch(t.Context(), source{url: srv.URL + c.path}, dir)
			if text := errText(err); text != c.err {
				t.Fatalf("got %q; want %q", text, c.err)
			}
			if c.err != "" {
				return
			}
			if d := cmp.Diff(map[string]string{"bin/detect": "-rw-r--r-- #!/bin/sh\n"}, contents(t, dir)); d != "" || size != int64(len(good)) {
				t.Errorf("%d bytes\n%s", size, d)
			}
		})
	}
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestInvalidURLs(t *testing.T) {
	for url, want := range map[string]string{
		"ftp://example.com/x.zip":          "ftp is not supported, only http and https are",
		"ssh://git@example.com/x":          "ssh is not supported, only http and https are",
		"http://user:pw@exa mple/x.zip":    "it is not a valid URL",
		"http://user:pw@127.0.0.1:1/x.zip": "dial tcp 127.0.0.1:1: connect: connection refused",
		"http://user:pw@127.0.0.1:1/x":     "cannot read git repository: dial tcp 127.0.0.1:1: connect: connection refused",
	} {
		if _, err := newFetcher().fetch(t.Context(), source{url: url}, t.TempDir()); errText(err) != want {
			t.Errorf("%s: got %v; want %q", url, err, want)
		}
	}
}

// Of an answer that is an error nothing is quoted but its status: it may come
// from where the user cannot look.
func TestAnswersAreNotQuoted(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		for r.Context().Err() == nil {
			if _, err := w.Write([]byte("SECRET of the server")); err != nil {
				return
			}
		}
	}))
	defer srv.Close()
	for path, want := range map[string]string{"/x": "cannot read git repository: 401 Unauthorized", "/x.zip": "401 Unauthorized"} {
		_, err := newFetcher().fetch(t.Context(), source{url: strings.Replace(srv.URL, "http://", "http://user:secret@", 1) + path}, t.TempDir())
		if errText(err) != want {
			t.Errorf("%s: got %v; want %s", path, err, want)
		}
	}
}

// A password is for the server that the URL names, not for one that this
// redirects to.
func TestPasswordsFollowNoRedirect(t *testing.T) {
	var mu sync.Mutex
	got := map[string]string{} // the user, by server and path
	note := func(server string, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		user, _, _ := r.BasicAuth()
		got[server+r.URL.Path] = user
	}
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		note("other", r)
		http.NotFound(w, r)
	}))
	defer other.Close()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		note("first", r)
		// Another name of the address is another server.
		http.Redirect(w, r, strings.Replace(other.URL, "127.0.0.1", "localhost", 1)+r.URL.Path, http.StatusFound)
	}))
	defer srv.Close()
	for _, path := range []string{"/x", "/x.zip"} {
		if _, err := newFetcher().fetch(t.Context(), source{url: strings.Replace(srv.URL, "http://", "http://user:secret@", 1) + path}, t.TempDir()); err == nil {
			t.Errorf("%s was fetched", path)
		}
	}
	want := map[string]string{"first/x.zip": "user", "first/x/info/refs": "user", "other/x.zip": "", "other/x/info/refs": ""}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// What an operator has apps trust is trusted here.
func TestSystemCertificates(t *testing.T) {
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write(zipOf(t, "bin/detect", "")) }))
	defer srv.Close()
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	if _, err := newFetcher().fetch(t.Context(), source{url: srv.URL + "/x.zip"}, t.TempDir()); !strings.Contains(errText(err), "certificate signed by unknown authority") {
		t.Errorf("got %v; want an unknown authority", err)
	}
	dir := t.TempDir()
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw})
	if err := os.WriteFile(filepath.Join(dir, "authority.crt"), text, 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv(contract.EnvCertificates, dir)
	if _, err := newFetcher().fetch(t.Context(), source{url: srv.URL + "/x.zip"}, t.TempDir()); err != nil {
		t.Error(err)
	}
}

// repository serves a real git repository over HTTP: with a branch, a tag, a
// link, an executable and a submodule.
func repository(t *testing.T) (base string, commits map[string]string) {
	t.Helper()
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("needs git")
	}
	base, root := served(t)
	run := func(dir string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), git, args...)
		cmd.Dir = filepath.Join(root, dir)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "HOME="+root, "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
		b, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v: %s", args, err, b)
		}
		return strings.TrimSpace(string(b))
	}
	file := func(name, content string, mode os.FileMode) {
		t.Helper()
		name = filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), mode); err != nil {
			t.Fatal(err)
		}
	}
	commits = map[string]string{}
	file("sub/VERSION", "7", 0o644)
	run("sub", "init", "-q", "-b", "main")
	run("sub", "add", ".")
	run("sub", "commit", "-qm", "1")
	file("bp/bin/detect", "#!/bin/sh\n", 0o755)
	file("bp/README", "first", 0o644)
	run("bp", "init", "-q", "-b", "main")
	run("bp", "add", ".")
	run("bp", "commit", "-qm", "1")
	commits["first"] = run("bp", "rev-parse", "HEAD")
	run("bp", "tag", "-a", "v1", "-m", "v1")
	run("bp", "checkout", "-q", "-b", "edge")
	file("bp/README", "edge", 0o644)
	run("bp", "commit", "-qam", "2")
	run("bp", "checkout", "-q", "main")
	file("bp/README", "second", 0o644)
	if err := os.Symlink("../../etc/passwd", filepath.Join(root, "bp/link")); err != nil {
		t.Fatal(err)
	}
	run("bp", "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", filepath.Join(root, "sub"), "lib/sub")
	run("bp", "config", "-f", ".gitmodules", "submodule.lib/sub.url", "../sub")
	run("bp", "add", ".")
	run("bp", "commit", "-qm", "3")
	return base, commits
}

// served is a directory whose repositories are served over HTTP.
func served(t *testing.T) (base, root string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "git", "--exec-path").Output()
	if err != nil {
		t.Skip(err)
	}
	backend := filepath.Join(strings.TrimSpace(string(out)), "git-http-backend")
	if _, err := os.Stat(backend); err != nil {
		t.Skip("needs git-http-backend")
	}
	root = t.TempDir()
	srv := httptest.NewServer(&cgi.Handler{Path: backend, Stderr: io.Discard, Env: []string{"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1", "HOME=" + root, "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*"}})
	t.Cleanup(srv.Close)
	return srv.URL, root
}

func TestGit(t *testing.T) {
	base, commits := repository(t)
	first := map[string]string{"bin/detect": "-rwxr-xr-x #!/bin/sh\n", "README": "-rw-r--r-- first"}
	edge := map[string]string{"bin/detect": "-rwxr-xr-x #!/bin/sh\n", "README": "-rw-r--r-- edge"}
	second := map[string]string{
		"bin/detect": "-rwxr-xr-x #!/bin/sh\n", "README": "-rw-r--r-- second",
		"link": "Lrwxrwxrwx ../../etc/passwd", "lib/sub/VERSION": "-rw-r--r-- 7",
		".gitmodules": "-rw-r--r-- [submodule \"lib/sub\"]\n\tpath = lib/sub\n\turl = ../sub\n",
	}
	for _, c := range []struct {
		url  string
		want map[string]string
		err  string
	}{
		{"/bp", second, ""},
		{"/bp#main", second, ""},
		{"/bp#edge", edge, ""},
		{"/bp#v1", first, ""},
		{"/bp#" + commits["first"], first, ""},
		{"/bp#absent", nil, "the repository has no branch or tag absent"},
		{"/bp#" + strings.Repeat("ab", 20), nil, "object not found"},
		{"/nothing", nil, "cannot read git repository: 404 Not Found"},
	} {
		t.Run(c.url, func(t *testing.T) {
			dir := t.TempDir()
			_, err := newFetcher().fetch(t.Context(), source{url: base + c.url}, dir)
			if c.err != "" {
				if !strings.Contains(errText(err), c.err) {
					t.Fatalf("got %v; want %q", err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, contents(t, dir)); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestGitIsBounded(t *testing.T) {
	nothingLeft(t)
	base, _ := repository(t)
	for limit := int64(10); limit < 400; limit += 50 { // the submodule's bytes count with the others
		f := newFetcher()
		f.bytes = limit
		if _, err := f.fetch(t.Context(), source{url: base + "/bp"}, t.TempDir()); !strings.Contains(errText(err), fmt.Sprintf("more than %d bytes", limit)) {
			t.Errorf("got %v", err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := newFetcher().fetch(ctx, source{url: base + "/bp"}, t.TempDir()); err == nil {
		t.Error("a cancelled fetch went on")
	}
}

// TestArchives downloads an archive of any kind with what the environment has for its host.
func TestArchives(t *testing.T) {
	var text bytes.Buffer
	z := gzip.NewWriter(&text)
	w := tar.NewWriter(z)
	if err := errors.Join(w.WriteHeader(&tar.Header{Name: "buildpack.toml", Mode: 0o644}), w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		if r.Header.Get("Authorization") != "Bearer t" && (user != "u" || password != "p") {
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		_, _ = w.Write(text.Bytes())
	}))
	t.Cleanup(srv.Close)
	for credentials, want := range map[string]string{
		`{"127.0.0.1": {"username": "u", "password": "p"}}`: "",
		`{"127.0.0.1": {"token": "t"}}`:                     "",
		`{"other.io": {"token": "t"}}`:                      "401 Unauthorized",
		`[]`:                                                "invalid CNB_REGISTRY_CREDS: it is not an object of objects",
		"":                                                  "401 Unauthorized",
		`{"` + strings.TrimPrefix(srv.URL, "http://") + `": {"token": "t"}}`: "",
	} {
		t.Setenv("CNB_REGISTRY_CREDS", credentials)
		dir := t.TempDir()
		_, err := newFetcher().fetch(t.Context(), source{url: srv.URL + "/bp", archive: true}, dir)
		if errText(err) != want {
			t.Errorf("%s: got %v; want %q", credentials, err, want)
		}
		if _, err := os.Stat(filepath.Join(dir, "buildpack.toml")); (err == nil) != (want == "") {
			t.Errorf("%s: %v", credentials, err)
		}
	}
}
