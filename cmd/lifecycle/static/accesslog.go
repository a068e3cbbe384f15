package static

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// logged writes a line for each answered request. The format is the staticfile
// buildpack's (src/staticfile/finalize/data.go):
//
//	$http_x_forwarded_for - $http_referer - [$time_local] "$request" $status $body_bytes_sent
func logged(next http.Handler, out io.Writer) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		counted := &countedResponse{ResponseWriter: w, status: http.StatusOK}
		defer func() { _, _ = out.Write(accessLine(r, counted, time.Now())) }() // requests are answered even if the log cannot be written
		next.ServeHTTP(counted, r)
	})
}

func accessLine(r *http.Request, w *countedResponse, now time.Time) []byte {
	bytes := w.bytes
	if r.Method == http.MethodHead {
		bytes = 0
	}
	return fmt.Appendf(nil, "%s - %s - [%s] \"%s\" %d %d\n", headerText(r, "X-Forwarded-For"), headerText(r, "Referer"),
		now.Format("02/Jan/2006:15:04:05 -0700"), escaped(r.Method+" "+r.RequestURI+" "+protocol(r)), w.status, bytes)
}

// headerText is a header as nginx's variables have it, "-" where there is none.
func headerText(r *http.Request, name string) string {
	values := r.Header.Values(name)
	if len(values) == 0 {
		return "-"
	}
	return escaped(strings.Join(values, ", "))
}

// protocol is the one of a request in nginx's words.
func protocol(r *http.Request) string {
	if r.ProtoMajor == 2 {
		return "HTTP/2.0"
	}
	return r.Proto
}

// escaped writes what could end a line or a quoted part as nginx does: \xXX.
func escaped(text string) string {
	var b strings.Builder
	for _, c := range []byte(text) {
		if c == '"' || c == '\\' || c < ' ' || c > '~' {
			fmt.Fprintf(&b, `\x%02X`, c)
			continue
		}
		b.WriteByte(c)
	}
	return b.String()
}

// countedResponse notes the status of an answer and counts the bytes of its body.
type countedResponse struct {
	http.ResponseWriter
	status  int
	bytes   int64
	started bool
}

// WriteHeader notes the first final status.
func (c *countedResponse) WriteHeader(status int) {
	if !c.started && status >= http.StatusOK {
		c.status, c.started = status, true
	}
	c.ResponseWriter.WriteHeader(status)
}

// Write counts what the server takes.
func (c *countedResponse) Write(p []byte) (int, error) {
	c.started = true
	n, err := c.ResponseWriter.Write(p)
	c.bytes += int64(n)
	return n, err
}

// ReadFrom lets the server send files without a copy, as without this writer.
func (c *countedResponse) ReadFrom(r io.Reader) (int64, error) {
	c.started = true
	n, err := io.Copy(c.ResponseWriter, r)
	c.bytes += n
	return n, err
}

// Unwrap is for http.ResponseController.
func (c *countedResponse) Unwrap() http.ResponseWriter { return c.ResponseWriter }
