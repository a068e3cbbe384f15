package healthcheck

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// listen serves on the address that probes ask and returns the port.
func listen(t *testing.T, h http.Handler) string {
	t.Helper()
	ip, err := ownAddress()
	if err != nil {
		t.Skip(err)
	}
	l, err := net.Listen("tcp", net.JoinHostPort(ip, "0"))
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: h}
	go func() { _ = s.Serve(l) }()
	t.Cleanup(func() { _ = s.Close() })
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}

func TestProbes(t *testing.T) {
	release := make(chan bool)
	defer close(release)
	port := listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/ok":
			if r.Header.Get("User-Agent") != "diego-healthcheck" || r.Header.Get("X-Forwarded-Proto") != "https" {
				w.WriteHeader(http.StatusBadRequest)
			}
		case "/slow":
			<-release
		default:
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	closed := closedPort(t)
	tests := []struct {
		p    probe
		code int
		text string
	}{
		{p: probe{port: port}},
		{p: probe{port: port, uri: "/ok"}},
		{p: probe{port: port, uri: "/bad"}, code: 6, text: "failed to make HTTP request to '/bad' on port " + port + ": received status code 503 in "},
		{p: probe{port: port, uri: "/slow", timeout: 50 * time.Millisecond}, code: 65, text: "failed to make HTTP request to '/slow' on port " + port + ": timed out after 0.05 seconds"},
		{p: probe{port: closed}, code: 4, text: "failed to make TCP connection to "},
		{p: probe{port: closed, uri: "/"}, code: 5, text: "failed to make HTTP request to '/' on port " + closed + ": connection refused"},
		{p: probe{port: port, uri: "/%zz"}, code: 6, text: "failed to create an HTTP request to '/%zz' on port " + port},
	}
	for _, test := range tests {
		test.p.network = "tcp"
		if test.p.timeout == 0 {
			test.p.timeout = 5 * time.Second
		}
		err := test.p.check(t.Context())
		f, _ := errors.AsType[failure](err)
		if f.code != test.code || (err != nil) != (test.code != 0) || !strings.HasPrefix(f.text, test.text) {
			t.Errorf("%+v: got %d %v; want %d %q", test.p, f.code, err, test.code, test.text)
		}
	}
}

func closedPort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}

// after is a check that fails until its n-th call, or passes until then.
func after(n int, first, then error) func(context.Context) error {
	calls := 0
	return func(context.Context) error {
		if calls++; calls < n {
			return first
		}
		return then
	}
}

func TestModes(t *testing.T) {
	refused := failure{4, "refused"}
	tests := []struct {
		args   string
		check  func(context.Context) error
		took   time.Duration
		prefix string
		err    error
	}{
		{args: "", check: after(1, nil, refused), err: refused},
		{args: "-startup-interval=2s -startup-timeout=1m", check: after(3, refused, nil), took: 4 * time.Second},
		{args: "-startup-interval=2s -startup-timeout=5s", check: after(9, refused, nil), took: 5 * time.Second,
			prefix: "Timed out after 5s (3 attempts) waiting for startup check to succeed: ", err: refused},
		{args: "-startup-interval=1h -startup-timeout=0", check: after(3, refused, nil), took: 2 * time.Hour},
		{args: "-liveness-interval=30s", check: after(3, nil, refused), took: time.Minute, prefix: "Liveness check unsuccessful: ", err: refused},
		{args: "-readiness-interval=30s", check: after(2, nil, refused), took: 30 * time.Second, prefix: "Readiness check unsuccessful: ", err: refused},
		{args: "-until-ready-interval=2s", check: after(2, refused, nil), took: 2 * time.Second},
	}
	for _, test := range tests {
		synctest.Test(t, func(t *testing.T) {
			_, m, err := parse(strings.Fields(test.args), io.Discard)
			if err != nil {
				t.Fatal(err)
			}
			started := time.Now()
			prefix, err := m.run(t.Context(), test.check)
			if took := time.Since(started); took != test.took || err != test.err || err != nil && prefix != test.prefix {
				t.Errorf("%s: got %q, %v after %v; want %q, %v after %v", test.args, prefix, err, took, test.prefix, test.err, test.took)
			}
		})
	}
}
