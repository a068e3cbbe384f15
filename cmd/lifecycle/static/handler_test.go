package static

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var big = strings.Repeat("hello, hello. ", 500)

// site writes an app and serves it.
func site(t *testing.T, c Config, files map[string]string) *httptest.Server {
	t.Helper()
	app := filepath.Join(t.TempDir(), "app")
	for name, text := range files {
		path := filepath.Join(app, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(filepath.Dir(app), "outside"), []byte("secret"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../outside", filepath.Join(app, "escape")); err != nil {
		t.Fatal(err)
	}
	h, err := newHandler(c, app)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(h)
	t.Cleanup(func() {
		s.Close()
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// ask sends a request without following redirects or decoding bodies.
func ask(t *testing.T, s *httptest.Server, method, path string, header ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequest(method, s.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := (&http.Transport{DisableCompression: true}).RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(body)
}

var files = map[string]string{
	"index.html": "home", "a.txt": "A", "sub/index.html": "sub", "bare/x.js": "x()", ".hidden": "h", ".well-known/acme": "w", "sub/.git/config": "g",
	"Staticfile": "s", "Staticfile.auth": "u", "manifest.yml": "m", "big.css": big, "big.bin": big, "pre.js": "plain", "pre.js.gz": "gzipped", "404.html": "lost", "with space.txt": "ws",
}

func TestServes(t *testing.T) {
	tests := []struct {
		name   string
		config Config
		method string // GET when empty
		path   string
		header []string
		status int
		body   string
		more   map[string]string // headers of the answer
	}{
		{name: "index", path: "/", status: 200, body: "home", more: map[string]string{"Content-Type": "text/html; charset=utf-8"}},
		{name: "file", path: "/a.txt", status: 200, body: "A", more: map[string]string{"Content-Type": "text/plain; charset=utf-8", "Vary": "Accept-Encoding"}},
		{name: "escaped", path: "/with%20space.txt", status: 200, body: "ws"},
		{name: "query", path: "/a.txt?x=1", status: 200, body: "A"},
		{name: "head", method: "HEAD", path: "/a.txt", status: 200, more: map[string]string{"Content-Length": "1"}},
		{name: "post", method: "POST", path: "/a.txt", status: 405, body: "405 Method Not Allowed\n", more: map[string]string{"Allow": "GET, HEAD"}},
		{name: "directory", path: "/sub?q=1", status: 301, body: "…", more: map[string]string{"Location": "/sub/?q=1"}},
		{name: "directory index", path: "/sub/", status: 200, body: "sub"},
		{name: "no index", path: "/bare/", status: 403, body: "403 Forbidden\n"},
		{name: "listing", config: Config{Listing: true}, path: "/bare/", status: 200, body: "<!doctype html>\n<title>Index of /bare</title>\n<h1>Index of /bare</h1>\n<ul>\n<li><a href=\"./x.js\">x.js</a></li>\n</ul>\n"},
		{name: "file with slash", path: "/a.txt/", status: 404, body: "404 Not Found\n"},
		{name: "missing", path: "/nope", status: 404, body: "404 Not Found\n"},
		{name: "dot segments", path: "/sub/../a.txt", status: 200, body: "A"},
		{name: "climbing", path: "/../../outside", status: 404, body: "404 Not Found\n"},
		{name: "climbing encoded", path: "/%2e%2e/outside", status: 404, body: "404 Not Found\n"},
		{name: "NUL", path: "/a%00.txt", status: 404, body: "404 Not Found\n"},
		{name: "symlink out", path: "/escape", status: 404, body: "404 Not Found\n"},
		{name: "configuration", path: "/Staticfile.auth", status: 404, body: "404 Not Found\n"},
		{name: "dot file", path: "/.hidden", status: 404, body: "404 Not Found\n"},
		{name: "dot directory", path: "/sub/.git/config", status: 404, body: "404 Not Found\n"},
		{name: "well known", path: "/.well-known/acme", status: 200, body: "w"},
		{name: "dot files", config: Config{DotFiles: true}, path: "/.hidden", status: 200, body: "h"},
		{name: "root", config: Config{Root: "sub"}, path: "/", status: 200, body: "sub"},
		{name: "outside root", config: Config{Root: "sub"}, path: "/a.txt", status: 404, body: "404 Not Found\n"},
		{name: "push state", config: Config{PushState: true}, path: "/any/thing", status: 200, body: "home"},
		{name: "push state file", config: Config{PushState: true}, path: "/a.txt", status: 200, body: "A"},
		{name: "status page", config: Config{StatusPages: map[string]string{"404": "/404.html"}}, path: "/nope", status: 404, body: "lost"},
		{name: "status class page", config: Config{StatusPages: map[string]string{"4xx": "/404.html"}}, path: "/bare/", status: 403, body: "lost"},
		{name: "status page missing", config: Config{StatusPages: map[string]string{"404": "/none.html"}}, path: "/nope", status: 404, body: "404 Not Found\n"},
		{name: "https forced", config: Config{ForceHTTPS: true}, path: "/a.txt?b=c", header: []string{"X-Forwarded-Host", "www.example.com"}, status: 301, more: map[string]string{"Location": "https://www.example.com/a.txt?b=c"}},
		{name: "https given", config: Config{ForceHTTPS: true}, path: "/a.txt", header: []string{"X-Forwarded-Proto", "https"}, status: 200, body: "A"},
		{name: "strict security", config: Config{StrictSecurity: "max-age=1"}, path: "/", status: 200, body: "home", more: map[string]string{"Strict-Transport-Security": "max-age=1"}},
		{name: "range", path: "/big.css", header: []string{"Range", "bytes=0-4", "Accept-Encoding", "gzip"}, status: 206, body: "hello", more: map[string]string{"Content-Encoding": ""}},
		{name: "bad range", path: "/a.txt", header: []string{"Range", "bytes=9-"}, status: 416, body: "…"},
		{name: "gzip refused", path: "/big.css", header: []string{"Accept-Encoding", "gzip;q=0"}, status: 200, body: big, more: map[string]string{"Content-Encoding": ""}},
		{name: "not compressible", path: "/big.bin", header: []string{"Accept-Encoding", "gzip"}, status: 200, body: big, more: map[string]string{"Content-Encoding": "", "Content-Type": "application/octet-stream"}},
		{name: "gzipped before", path: "/pre.js", header: []string{"Accept-Encoding", "br, gzip"}, status: 200, body: "gzipped", more: map[string]string{"Content-Encoding": "gzip", "Content-Type": "text/javascript; charset=utf-8"}},
		{name: "no password", config: Config{Passwords: map[string]string{"u": "{PLAIN}p"}}, path: "/", status: 401, body: "401 Unauthorized\n", more: map[string]string{"Www-Authenticate": `Basic realm="Restricted"`}},
		{name: "wrong password", config: Config{Passwords: map[string]string{"u": "{PLAIN}p"}}, path: "/", header: []string{"Authorization", "Basic dTp4"}, status: 401, body: "401 Unauthorized\n"},
		{name: "password", config: Config{Passwords: map[string]string{"u": "{PLAIN}p"}}, path: "/", header: []string{"Authorization", "Basic dTpw"}, status: 200, body: "home"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if test.method == "" {
				test.method = "GET"
			}
			res, body := ask(t, site(t, test.config, files), test.method, test.path, test.header...)
			if res.StatusCode != test.status || test.body != "…" && body != test.body {
				t.Errorf("got %d %.200q; want %d %.200q", res.StatusCode, body, test.status, test.body)
			}
			for name, want := range test.more {
				if got := res.Header.Get(name); got != want {
					t.Errorf("%s: got %q; want %q", name, got, want)
				}
			}
		})
	}
}

func TestCompressesAndValidates(t *testing.T) {
	s := site(t, Config{}, files)
	var tag string
	for range 2 { // the second answer is the kept one
		res, body := ask(t, s, "GET", "/big.css", "Accept-Encoding", "gzip")
		if res.Header.Get("Content-Encoding") != "gzip" || len(body) > len(big)/2 {
			t.Fatalf("got %d bytes encoded %q; want them gzipped", len(body), res.Header.Get("Content-Encoding"))
		}
		z, err := gzip.NewReader(bytes.NewReader([]byte(body)))
		if err != nil {
			t.Fatal(err)
		}
		if text, err := io.ReadAll(z); err != nil || string(text) != big {
			t.Errorf("got %d bytes, %v; want the file", len(text), err)
		}
		tag = res.Header.Get("Etag")
	}
	if res, body := ask(t, s, "GET", "/big.css", "Accept-Encoding", "gzip", "If-None-Match", tag); res.StatusCode != http.StatusNotModified || body != "" {
		t.Errorf("same tag: got %d; want 304", res.StatusCode)
	}
	res, _ := ask(t, s, "GET", "/big.css", "If-None-Match", tag)
	if res.StatusCode != http.StatusOK || res.Header.Get("Etag") == tag {
		t.Errorf("the tag of the gzipped answer: got %d with tag %s; want 200 and another", res.StatusCode, res.Header.Get("Etag"))
	}
	if res, _ := ask(t, s, "GET", "/a.txt", "If-Modified-Since", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)); res.StatusCode != http.StatusNotModified {
		t.Errorf("not modified: got %d; want 304", res.StatusCode)
	}
}

func TestPasswordHashes(t *testing.T) {
	tests := []struct {
		hash, password string
		want           bool
	}{
		{"$apr1$abcdefgh$h9FWgUz3n9YxylKLlR5SQ/", "secret", true},
		{"$apr1$x$tMwYqBfQwi3FYAr0aJc8M/", "", true},
		{"$apr1$12345678$/p6FcMb67DaZSwzciZy3O1", "a long password of more than sixteen bytes", true},
		{"$apr1$abcdefgh$h9FWgUz3n9YxylKLlR5SQ/", "Secret", false},
		{"{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=", "secret", true},
		{"{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=", "x", false},
		{"{SSHA}gVK8WC9YyFT1gMsQHTGCgT3sSv5zYWx0", "secret", true},
		{"{SSHA}gVK8", "secret", false},
		{"$2a$04$5kBCrVi6k/GsAkiJLtnVF.t9pXQ8OGKSbMZkgvAEPlMnYqtMqPC2e", "wrong", false},
		{"secret", "secret", false},
	}
	for _, test := range tests {
		if got := matches(test.hash, test.password); got != test.want {
			t.Errorf("matches(%s, %s): got %v; want %v", test.hash, test.password, got, test.want)
		}
	}
}

func TestServeFinishesRequestsInWork(t *testing.T) {
	started, finish := make(chan bool), make(chan bool)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		started <- true
		<-finish
		_, _ = io.WriteString(w, "done")
	})}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- serveUntil(ctx, server, l) }()
	answer := make(chan string, 1)
	go func() {
		res, err := http.Get("http://" + l.Addr().String())
		if err != nil {
			answer <- err.Error()
			return
		}
		defer res.Body.Close()
		body, _ := io.ReadAll(res.Body)
		answer <- string(body)
	}()
	<-started
	stop()
	close(finish)
	if got := <-answer; got != "done" {
		t.Errorf("got %q; want the request answered", got)
	}
	if err := <-ended; err != nil {
		t.Errorf("got %v; want a clean end", err)
	}
}
