package router

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"cupola/runtime/identity"
	"cupola/test/loopback"
)

// secureWorld is instances that speak TLS, with the authorities of instances and of
// the router.
type secureWorld struct {
	t                 *testing.T
	instances, router *identity.Authority
	own               *tls.Certificate // of the router
}

func newSecureWorld(t *testing.T) *secureWorld {
	t.Helper()
	w := &secureWorld{t: t, instances: newAuthority(t), router: newAuthority(t)}
	w.own = w.issue(w.router, "gorouter.service.cf.internal")
	return w
}

func newAuthority(t *testing.T) *identity.Authority {
	t.Helper()
	a, err := identity.Open(t.TempDir(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func (w *secureWorld) issue(by *identity.Authority, name string) *tls.Certificate {
	w.t.Helper()
	c, err := by.IssueLight(identity.Subject{InstanceGUID: name})
	if err != nil {
		w.t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(c.Certificate, c.Key)
	if err != nil {
		w.t.Fatal(err)
	}
	return &pair
}

func (w *secureWorld) site() *site {
	return newSite(w.t, Config{Timeouts: Timeouts{Dial: time.Minute}, Backends: &BackendTLS{
		Authorities: w.instances.Certificate, Certificate: func() *tls.Certificate { return w.own },
	}})
}

// listen starts what shows a certificate at a TLS address, and counts the requests
// that it gets.
func (w *secureWorld) listen(cert *tls.Certificate, change func(*tls.Config), name string) (e Endpoint, requests *atomic.Int64) {
	requests = new(atomic.Int64)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(rw, "%s %s %s", name, r.Proto, body)
	}))
	s.TLS = &tls.Config{Certificates: []tls.Certificate{*cert}}
	if change != nil {
		change(s.TLS)
	}
	s.StartTLS()
	w.t.Cleanup(s.Close)
	e = endpointOf("192.0.2.1:1", name, 0) // a plain port that nothing listens at
	e.TLSAddress = s.Listener.Addr().String()
	return e, requests
}

func clients(of *identity.Authority) func(*tls.Config) {
	return func(c *tls.Config) {
		c.ClientAuth, c.ClientCAs = tls.RequireAndVerifyClientCert, x509.NewCertPool()
		c.ClientCAs.AppendCertsFromPEM(of.Certificate())
	}
}

// The router speaks TLS to an instance, which may ask for its certificate, and the
// instance sees an ordinary request.
func TestTLSToInstances(t *testing.T) {
	w := newSecureWorld(t)
	s := w.site()
	plain, _ := w.listen(w.issue(w.instances, "one"), nil, "one")
	mutual, _ := w.listen(w.issue(w.instances, "two"), clients(w.router), "two")
	older, _ := w.listen(w.issue(w.instances, "three"), func(c *tls.Config) { clients(w.router)(c); c.MaxVersion = tls.VersionTLS12 }, "three")
	s.Set(Table{Routes: []Route{route("one.test", plain), route("two.test", mutual), route("three.test", older), route("none.test", app(t, "without", 0, nil))}})
	for host, want := range map[string]string{"one.test": "one HTTP/1.1 ", "two.test": "two HTTP/1.1 ", "three.test": "three HTTP/1.1 ", "none.test": "without"} {
		for range 2 {
			if got := s.get(t, host); got.status != 200 || got.body != want {
				t.Errorf("%s: got %d %q", host, got.status, got.body)
			}
		}
	}
	if line := s.lines()[0]; strings.Contains(line, "192.0.2.1") {
		t.Errorf("the access log names a port that was not used: %s", line)
	}
}

// The ways in which an instance is not the one that it should be, with gorouter's
// answers (proxy/backend_tls_test.go, proxy/round_tripper/error_handler.go). None ever
// gets a request, and where there is another instance, that does.
func TestImpostors(t *testing.T) {
	w := newSecureWorld(t)
	strangers := newAuthority(t)
	plain := app(t, "plain", 0, nil)
	plain.TLSAddress = plain.Address
	for name, c := range map[string]struct {
		cert   *tls.Certificate
		change func(*tls.Config)
		status int
		body   string
		says   string
		pruned bool
	}{
		"another instance":            {w.issue(w.instances, "another"), nil, 503, "503 Service Unavailable", "certificate is valid for another, not one", true},
		"another authority":           {w.issue(strangers, "one"), nil, 526, "526 Invalid SSL Certificate", "unknown authority", true},
		"does not trust the router":   {w.issue(w.instances, "one"), clients(strangers), 496, "496 SSL Certificate Required", "remote error: tls: ", false},
		"does not, with an older TLS": {w.issue(w.instances, "one"), func(c *tls.Config) { clients(strangers)(c); c.MaxVersion = tls.VersionTLS12 }, 496, "496 SSL Certificate Required", "remote error: tls: ", false},
		"no TLS at all":               {nil, nil, 525, "525 SSL Handshake Failed", "first record does not look like a TLS handshake", false},
		"no ciphers in common": {w.issue(w.instances, "one"), func(c *tls.Config) {
			c.MaxVersion = tls.VersionTLS12
			c.CipherSuites = []uint16{tls.TLS_RSA_WITH_RC4_128_SHA}
		}, 525, "525 SSL Handshake Failed", "handshake failure", false}, //nolint:gosec // no connection is made
		"a connection that ends at once": {nil, nil, 502, "502 Bad Gateway: Registered endpoint failed to handle the request.", "EOF", false},
	} {
		s := w.site()
		bad, requests := plain, new(atomic.Int64)
		bad.InstanceGUID = "one"
		switch {
		case c.cert != nil:
			bad, requests = w.listen(c.cert, c.change, "one")
		case c.status == 502:
			bad.TLSAddress = closer(t)
		}
		s.Set(Table{Routes: []Route{route("app.test", bad)}})
		got := s.get(t, "app.test")
		if got.status != c.status || strings.TrimSpace(got.body) != c.body {
			t.Errorf("%s: got %d %q; want %d %q", name, got.status, got.body, c.status, c.body)
		}
		if said := got.header.Get("X-Cf-RouterError"); !strings.HasPrefix(said, "endpoint_failure (") || !strings.Contains(said, c.says) {
			t.Errorf("%s: got %q; want %q", name, said, c.says)
		}
		if again := s.get(t, "app.test"); c.pruned && (again.status != 503 || again.header.Get("X-Cf-RouterError") != "no_endpoints") || !c.pruned && again.status != c.status {
			t.Errorf("%s, again: got %d %s", name, again.status, again.header.Get("X-Cf-RouterError"))
		}
		good, _ := w.listen(w.issue(w.instances, "good"), nil, "good")
		s = w.site()
		s.Set(Table{Routes: []Route{route("app.test", bad, good)}})
		for range 4 {
			req, err := http.NewRequestWithContext(t.Context(), "POST", "http://"+s.addr+"/", strings.NewReader("body"))
			if err != nil {
				t.Fatal(err)
			}
			req.Host = "app.test"
			if got := do(t, http.DefaultTransport, req); got.body != "good HTTP/1.1 body" && got.status != 496 {
				t.Errorf("%s, beside another: got %d %q %s", name, got.status, got.body, got.header.Get("X-Cf-RouterError"))
			}
		}
		if n := requests.Load(); n > 0 {
			t.Errorf("%s: got %d requests", name, n)
		}
	}
}

// closer is an address that ends each connection at once.
func closer(t *testing.T) string {
	t.Helper()
	return loopback.Serve(t, func(c net.Conn) {
		_, _ = io.ReadAtLeast(c, make([]byte, 1), 1)
		if err := c.(*net.TCPConn).CloseWrite(); err != nil {
			c.Close()
		}
	}).String()
}

// An instance refuses the router's certificate and resets the connection before the router
// writes: the write fails with the instance's alert, not with the reset.
func TestWriteAfterRefusal(t *testing.T) {
	w := newSecureWorld(t)
	l := loopback.Listen(t)
	config := &tls.Config{Certificates: []tls.Certificate{*w.issue(w.instances, "one")}}
	clients(newAuthority(t))(config)
	closed := make(chan error, 1)
	go func() {
		conn, err := l.Accept()
		if err == nil {
			_ = tls.Server(conn, config).Handshake() // refuses
			err = errors.Join(conn.(*net.TCPConn).SetLinger(0), conn.Close())
		}
		closed <- err
	}()
	e := endpointOf("192.0.2.1:1", "one", 0)
	e.TLSAddress = l.Addr().String()
	conn, err := w.site().securing(e, new(net.Dialer).DialContext)(t.Context(), "tcp", e.TLSAddress)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := <-closed; err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = conn.Write([]byte("request"))
	}
	if !refusedUs(err) {
		t.Errorf("got %v; want the instance's alert", err)
	}
	conn.Close()
	if _, err := conn.Write([]byte("request")); !refusedUs(err) {
		t.Errorf("closed: got %v; want the instance's alert", err)
	}
}

// An endpoint that was pruned gets requests again after a while.
func TestPrunedComesBack(t *testing.T) {
	b, now := &backend{}, time.Now()
	b.prune(now)
	if !b.pruned(now) || b.pruned(now.Add(downTime)) {
		t.Error("it is not out for the time that an endpoint is down")
	}
}

// A route of HTTP/2 is spoken over TLS as well.
func TestHTTP2OverTLS(t *testing.T) {
	w := newSecureWorld(t)
	s := w.site()
	cert := w.issue(w.instances, "one")
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { fmt.Fprint(rw, r.Proto) }))
	server.TLS, server.EnableHTTP2 = &tls.Config{Certificates: []tls.Certificate{*cert}}, true
	server.StartTLS()
	defer server.Close()
	e := endpointOf("192.0.2.1:1", "one", 0)
	e.TLSAddress, e.Protocol = server.Listener.Addr().String(), HTTP2
	s.Set(Table{Routes: []Route{route("app.test", e)}})
	if got := s.get(t, "app.test"); got.status != 200 || got.body != "HTTP/2.0" {
		t.Errorf("got %d %q %s", got.status, got.body, got.header.Get("X-Cf-RouterError"))
	}
}
