package static

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// lines is a log that several requests write to.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// The format is that of the staticfile buildpack's nginx.conf:
// '$http_x_forwarded_for - $http_referer - [$time_local] "$request" $status $body_bytes_sent'.
func TestRequestsAreLogged(t *testing.T) {
	app := t.TempDir()
	for name, text := range map[string]string{"index.html": "hello", "big.txt": big} {
		if err := os.WriteFile(filepath.Join(app, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	h, err := newHandler(Config{}, app)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	const at = `\[\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d [+-]\d{4}\]`
	for _, c := range []struct {
		name, method, target string
		header               http.Header
		want                 string
	}{
		{"a file", "GET", "/", nil, `- - - - AT "GET / HTTP/1.1" 200 5`},
		{"query and headers", "GET", "/index.html?a=1", http.Header{"X-Forwarded-For": {"192.0.2.1", "10.0.0.1"}, "Referer": {"https://example.com/x"}},
			`192\.0\.2\.1, 10\.0\.0\.1 - https://example\.com/x - AT "GET /index\.html\?a=1 HTTP/1.1" 200 5`},
		{"no body", "HEAD", "/", nil, `- - - - AT "HEAD / HTTP/1.1" 200 0`},
		{"a file that is not there", "GET", "/none", nil, `- - - - AT "GET /none HTTP/1.1" 404 14`},
		{"a method", "DELETE", "/", nil, `- - - - AT "DELETE / HTTP/1.1" 405 23`},
		{"a part", "GET", "/big.txt", http.Header{"Range": {"bytes=0-9"}}, `- - - - AT "GET /big\.txt HTTP/1.1" 206 10`},
		{"text that would end the line", "GET", "/", http.Header{"Referer": {"a\"b\\c\nd\xe9"}}, `- - a\\x22b\\x5Cc\\x0Ad\\xE9 - AT "GET / HTTP/1.1" 200 5`},
	} {
		var log lines
		r := httptest.NewRequest(c.method, c.target, nil)
		r.Header = c.header
		if r.Header == nil {
			r.Header = http.Header{}
		}
		w := httptest.NewRecorder()
		logged(h, &log).ServeHTTP(w, r)
		if want := "^" + strings.Replace(c.want, "AT", at, 1) + "\n$"; !regexp.MustCompile(want).MatchString(log.text.String()) {
			t.Errorf("%s: got %q; want %s", c.name, log.text.String(), want)
		}
	}
}
