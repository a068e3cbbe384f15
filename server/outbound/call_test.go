package outbound

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"cupola/store"
	"cupola/store/cf"
)

// app is an app whose route is web.apps.test, as the router serves it.
func app(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/ok":
		fmt.Fprint(w, strings.Repeat("x", 2*maxAnswer))
	case "/echo":
		http.Error(w, fmt.Sprintf("%s %s %d %q", r.Method, r.Host, r.ContentLength, r.Header.Get("Authorization")), http.StatusTeapot)
	case "/moved":
		http.Redirect(w, r, "/ok", http.StatusFound)
	case "/binary":
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = w.Write([]byte("\x00\xff\x1b[31m"))
	default:
		w.WriteHeader(http.StatusNoContent)
	}
}

func newCaller(t *testing.T) (c *Caller, port string) {
	t.Helper()
	router := httptest.NewServer(http.HandlerFunc(app))
	t.Cleanup(router.Close)
	address := router.Listener.Addr().String()
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(store.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	err = s.Write(t.Context(), func(tx *store.Tx) error {
		return store.Domains.Insert(tx, &cf.Domain{Name: "apps.test"})
	})
	if err != nil {
		t.Fatal(err)
	}
	return NewCaller(s, Network{Router: func(p string) string {
		if p == port {
			return address
		}
		return ""
	}}), port
}

// TestCall calls an app of the platform, and what its space may not connect to.
func TestCall(t *testing.T) {
	c, port := newCaller(t)
	web := "http://web.apps.test:" + port
	for _, test := range []struct{ url, header, want, fault string }{
		{url: web + "/", want: "204 No Content"},
		{url: web + "/ok", want: "200 OK"},
		{url: web + "/echo", header: "bearer x", fault: `answered 418 I'm a teapot: POST web.apps.test:` + port + ` 0 "bearer x"`},
		{url: web + "/echo", fault: `answered 418 I'm a teapot: POST web.apps.test:` + port + ` 0 ""`},
		{url: web + "/moved", fault: "answered 302 Found"},
		{url: web + "/binary", fault: "answered 500 Internal Server Error: [31m"},
		{url: "http://127.0.0.1:" + port + "/?token=secret", fault: "dial tcp 127.0.0.1:" + port + ": " + errOutOfReach.Error()},
		{url: "http://none.invalid/", fault: "lookup none.invalid: no such host"},
		{url: "http://169.254.169.254/", fault: "dial tcp 169.254.169.254:80: " + errOutOfReach.Error()},
	} {
		got, err := c.Call(t.Context(), "space-1", &cf.AppJob{URL: test.url, AuthHeader: test.header})
		fault := ""
		if err != nil {
			fault = err.Error()
		}
		if got != test.want || fault != test.fault {
			t.Errorf("%s: got %q, %q; want %q, %q", test.url, got, fault, test.want, test.fault)
		}
	}
}

// TestCallWaitsForRoom has a space whose calls take all that it may have: others go on.
func TestCallWaitsForRoom(t *testing.T) {
	c, port := newCaller(t)
	taken := 0
	for c.room.Take("greedy") {
		taken++
	}
	if taken < maxCalls/2 {
		t.Errorf("a space alone has %d of %d calls", taken, maxCalls)
	}
	call := &cf.AppJob{URL: "http://web.apps.test:" + port}
	if got, err := c.Call(t.Context(), "modest", call); err != nil || got != "204 No Content" {
		t.Errorf("got %q, %v", got, err)
	}
	ended, end := context.WithCancelCause(t.Context())
	end(errors.New("over"))
	if got, err := c.Call(ended, "greedy", call); err == nil || err.Error() != "over, while it waited for other calls to end" {
		t.Errorf("got %q, %v; want it to wait", got, err)
	}
	c.room.Put("greedy")
	if got, err := c.Call(t.Context(), "greedy", call); err != nil || got != "204 No Content" {
		t.Errorf("got %q, %v", got, err)
	}
}
