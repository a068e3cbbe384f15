package buildpack

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cupola/server/outward"
	"cupola/store/blob"
)

// anywhere is where the servers of tests are.
var anywhere = outward.Guard{Local: true}

func newFetcher(t *testing.T, c Config) (*Fetcher, *blob.Store) {
	t.Helper()
	blobs, err := blob.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	c.Blobs, c.TempDir = blobs, filepath.Join(t.TempDir(), "packs")
	if err := os.MkdirAll(filepath.Join(c.TempDir, "of-one-that-was-killed"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if left, _ := os.ReadDir(c.TempDir); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	})
	f, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return f, blobs
}

// contents reads a zip: "mode content" by name.
func contents(t *testing.T, blobs *blob.Store, digest string) map[string]string {
	t.Helper()
	file, err := blobs.Path(digest)
	if err != nil {
		t.Fatal(err)
	}
	z, err := zip.OpenReader(file)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	files := map[string]string{}
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		files[f.Name] = fmt.Sprintf("%v %s", f.Mode(), b)
	}
	return files
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
	good := zipOf(t, "bin/detect", "#!/bin/sh\n")
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/good.zip":
			w.Write(good)
		case "/moved.zip":
			http.Redirect(w, r, "/good.zip", http.StatusFound)
		case "/bad.zip":
			io.WriteString(w, "not a zip")
		case "/large.zip":
			w.Header().Set("Transfer-Encoding", "chunked")
			w.Write(make([]byte, 5000))
		case "/broken.zip":
			w.Header().Set("Content-Length", "1000")
			w.Write(good[:50])
		default:
			http.NotFound(w, r)
		}
	}))
	defer srv.Close()
	for _, c := range []struct{ path, err string }{
		{"/good.zip", ""},
		{"/good.zip#ignored", ""},
		{"/moved.zip", ""},
		{"/bad.zip", "it is no valid zip file: not a valid zip file"},
		{"/large.zip", "it has more than 4096 bytes"},
		{"/broken.zip", "the download broke off after 50 bytes: unexpected EOF"},
		{"/absent.zip", "the server says 404 Not Found"},
	} {
		t.Run(c.path, func(t *testing.T) {
			f, blobs := newFetcher(t, Config{Where: anywhere, MaxBytes: 4096})
			digest, err := f.Fetch(t.Context(), srv.URL+c.path)
			if text := errText(err); text != c.err {
				t.Fatalf("got %q; want %q", text, c.err)
			}
			if c.err != "" {
				return
			}
			want := map[string]string{"bin/detect": "-rw-rw-rw- #!/bin/sh\n"}
			if d := cmp.Diff(want, contents(t, blobs, digest)); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestALinkLocalAddressIsNeverAsked(t *testing.T) {
	f, _ := newFetcher(t, Config{Where: anywhere})
	for _, host := range []string{"169.254.169.254", "::ffff:169.254.169.254", "64:ff9b::169.254.169.254", "fe80::1%25lo", "fd00:ec2::254"} {
		url := "http://" + host + "/x.zip"
		if strings.Contains(host, ":") {
			url = "http://[" + host + "]/x.zip"
		}
		if _, err := f.Fetch(t.Context(), url); !errors.Is(err, outward.ErrAddress) {
			t.Errorf("%s: got %v", url, err)
		}
	}
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestWhatIsNotFetched(t *testing.T) {
	srv := httptest.NewServer(http.NotFoundHandler())
	defer srv.Close()
	for _, c := range []struct{ url, err string }{
		{"ftp://example.com/x.zip", "ftp is not supported, only http and https are"},
		{"ssh://git@example.com/x", "ssh is not supported, only http and https are"},
		{"http://exa mple/x.zip", "it is not a URL"},
		{srv.URL + "/x.zip", outward.ErrAddress.Error()},
		{srv.URL + "/x", outward.ErrAddress.Error()},
	} {
		f, _ := newFetcher(t, Config{})
		_, err := f.Fetch(t.Context(), c.url)
		if !strings.Contains(errText(err), c.err) {
			t.Errorf("%s: got %v; want %q", c.url, err, c.err)
		}
		if strings.Contains(errText(err), "http://user") {
			t.Errorf("%s: secret in %v", c.url, err)
		}
	}
}

// A server that answers without end is not listened to for long, and its
// answer's text never has the password that it was asked with.
func TestAnEndlessAnswerIsCutOff(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		for r.Context().Err() == nil {
			if _, err := w.Write(make([]byte, 1<<20)); err != nil {
				return
			}
		}
	}))
	defer srv.Close()
	f, _ := newFetcher(t, Config{Where: anywhere})
	_, err := f.Fetch(t.Context(), strings.Replace(srv.URL, "http://", "http://user:secret@", 1)+"/x")
	if text := errText(err); !strings.Contains(text, "authentication required") || len(text) > 2*maxErrorText || strings.Contains(text, "secret") {
		t.Errorf("got %d bytes: %.200s", len(text), text)
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
		{"/nothing", nil, "it is no git repository that can be read"},
	} {
		t.Run(c.url, func(t *testing.T) {
			f, blobs := newFetcher(t, Config{Where: anywhere})
			digest, err := f.Fetch(t.Context(), base+c.url)
			if c.err != "" {
				if !strings.Contains(errText(err), c.err) {
					t.Fatalf("got %v; want %q", err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, contents(t, blobs, digest)); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestGitIsBounded(t *testing.T) {
	base, _ := repository(t)
	f, _ := newFetcher(t, Config{Where: anywhere, MaxBytes: 10})
	_, err := f.Fetch(t.Context(), base+"/bp")
	if !strings.Contains(errText(err), "more than 10 bytes") {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.Fetch(ctx, base+"/bp"); err == nil {
		t.Error("a cancelled fetch went on")
	}
}
