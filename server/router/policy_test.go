package router

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// certOf is a certificate that an authority gives; of nil it is one itself.
func certOf(t *testing.T, parent *tls.Certificate, units ...string) *tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "i", OrganizationalUnit: units}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IsCA: parent == nil, BasicConstraintsValid: true, DNSNames: []string{"*.apps.identity"}}
	issuer, signer := template, any(key)
	if parent != nil {
		issuer, signer = parent.Leaf, parent.PrivateKey
	}
	der, err := x509.CreateCertificate(rand.Reader, template, issuer, key.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

// guardedSite is a router behind TLS that wants certificates for apps.identity.
type guardedSite struct {
	*Router
	t    *testing.T
	addr string
	ca   *tls.Certificate
}

func newGuardedSite(t *testing.T) *guardedSite {
	t.Helper()
	s := &guardedSite{Router: New(Config{Log: slog.New(slog.DiscardHandler), DistrustForwarded: true}), t: t, ca: certOf(t, nil)}
	pool := x509.NewCertPool()
	pool.AddCert(s.ca.Leaf)
	base := &tls.Config{Certificates: []tls.Certificate{*certOf(t, s.ca)}, NextProtos: []string{"http/1.1"}}
	mutual := base.Clone()
	mutual.ClientAuth, mutual.ClientCAs = tls.RequireAndVerifyClientCert, pool
	base.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		if _, ok := s.Guards(hello.ServerName); ok {
			return mutual, nil
		}
		return nil, nil
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.addr = l.Addr().String()
	server := NewServer(s.Router, s.config.Log, Timeouts{})
	go server.Serve(Guard(l, base, s.config.Gate))
	t.Cleanup(func() { server.Close() })
	return s
}

// call asks host with the TLS name and certificate; 0 is a handshake that failed.
func (s *guardedSite) call(name, host string, cert *tls.Certificate) (status int, body string) {
	s.t.Helper()
	config := &tls.Config{ServerName: name, InsecureSkipVerify: true}
	if cert != nil {
		config.Certificates = []tls.Certificate{*cert}
	}
	req, err := http.NewRequestWithContext(s.t.Context(), "GET", "https://"+s.addr+"/", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	req.Host = host
	req.Header.Set(clientCertHeader, "forged")
	res, err := (&http.Transport{TLSClientConfig: config, DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		return 0, err.Error()
	}
	defer res.Body.Close()
	b, _ := io.ReadAll(res.Body)
	return res.StatusCode, string(b)
}

func TestPolicies(t *testing.T) {
	s := newGuardedSite(t)
	shown := func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.Header.Get(clientCertHeader)) }
	near, far := app(t, "near", 0, shown), app(t, "far", 1, shown)
	far.AppGUID = otherApp
	places := map[string]Place{appGUID: {OrgGUID: "o", SpaceGUID: "s"}, otherApp: {OrgGUID: "o2", SpaceGUID: "s2"}}
	lead := func(scope string, endpoints []Endpoint, sources ...string) {
		s.Set(Table{Guarded: []string{"Apps.Identity"}, Routes: []Route{route("open.test", near),
			{Host: "back.apps.identity", AppGUID: appGUID, Endpoints: endpoints, Policy: &Policy{Scope: scope, Sources: sources, Places: places}}}})
	}
	both := []Endpoint{near, far}
	caller := certOf(t, s.ca, "app:a", "space:s", "organization:o")
	stranger, nobody := certOf(t, s.ca, "app:b", "space:s3", "organization:o3"), certOf(t, s.ca)
	const name = "back.apps.identity"
	lead("any", both, "cf:any")
	for _, c := range []struct {
		what, sni, host string
		cert            *tls.Certificate
		want            int
	}{
		{"caller", name, name, caller, 200},
		{"another app", name, name, stranger, 200},
		{"no identity in the certificate", name, name, nobody, 403},
		{"no certificate", name, name, nil, 0},
		{"a certificate of another authority", name, name, certOf(t, certOf(t, nil), "app:a", "space:s", "organization:o"), 0},
		{"a name without a guard", "open.test", name, caller, 421},
		{"another guarded name", "other.apps.identity", name, caller, 421},
		{"an open route", "open.test", "open.test", nil, 200},
	} {
		if got, body := s.call(c.sni, c.host, c.cert); got != c.want {
			t.Errorf("%s: got %d %s; want %d", c.what, got, body, c.want)
		}
	}
	if _, body := s.call(name, name, caller); !strings.HasPrefix(body, "Hash=") || !strings.Contains(body, "OU=app:a") {
		t.Errorf("the app is told %q of its caller", body)
	}
	if _, body := s.call("open.test", "open.test", nil); body != "" {
		t.Errorf("an app is told %q that its client made up", body)
	}
	for _, c := range []struct {
		scope  string
		to     []Endpoint
		source string
		want   int
	}{
		{"any", both, "", 403}, {"any", both, "cf:app:a", 200}, {"any", both, "cf:app:x", 403}, {"any", both, "cf:space:s", 200}, {"any", both, "cf:org:o", 200}, {"any", both, "cf:org:o2", 403},
		{"org", both, "cf:any", 200}, {"org", both[1:], "cf:any", 403}, {"space", both[:1], "cf:any", 200}, {"space", both[1:], "cf:any", 403},
	} {
		sources := []string{c.source}
		if c.source == "" {
			sources = nil
		}
		lead(c.scope, c.to, sources...)
		for range 3 {
			if got, body := s.call(name, name, caller); got != c.want {
				t.Errorf("%v: got %d %s", c, got, body)
			}
		}
	}
	if res, err := http.Get("http://" + s.addr); err == nil && res.StatusCode == 200 {
		t.Error("it is reached without TLS")
	}
}

// A route service that is an app of ours is reached without its front: a route
// that leads there must not lead past its policy.
func TestARouteServiceLeadsPastNoPolicy(t *testing.T) {
	s := newGuardedSite(t)
	secret := app(t, "secret", 0, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "secret") })
	mine := route("mine.test", app(t, "mine", 1, func(http.ResponseWriter, *http.Request) {}))
	mine.ServiceURL = "https://back.apps.identity/"
	policy := &Policy{Scope: "any", Sources: []string{"cf:app:a"}}
	s.Set(Table{Guarded: []string{"apps.identity"}, Routes: []Route{mine, {Host: "back.apps.identity", AppGUID: appGUID, Endpoints: []Endpoint{secret}, Policy: policy}}})
	if got, body := s.call("mine.test", "mine.test", nil); got != http.StatusMisdirectedRequest || body == "secret" {
		t.Errorf("got %d %q; want it refused", got, body)
	}
}

// A policy that comes while a request is on its way holds for its next attempt.
func TestAPolicyThatComesMeanwhile(t *testing.T) {
	s := newGuardedSite(t)
	secret := app(t, "secret", 0, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "secret") })
	open := Route{Host: "back.apps.identity", AppGUID: appGUID, Endpoints: []Endpoint{secret}}
	s.Set(Table{Routes: []Route{open}})
	x := &exchange{router: s.Router, host: open.Host, path: "/"}
	if got := x.reresolve(); len(got) != 1 {
		t.Fatalf("got %d endpoints; want 1", len(got))
	}
	open.Policy = &Policy{Scope: "any", Sources: []string{"cf:app:a"}}
	s.Set(Table{Routes: []Route{open}})
	for _, c := range []struct {
		caller *caller
		want   int
	}{{nil, 0}, {&caller{app: "b"}, 0}, {&caller{app: "a"}, 1}} {
		x.caller = c.caller
		if got := x.reresolve(); len(got) != c.want {
			t.Errorf("%+v: got %d endpoints; want %d", c.caller, len(got), c.want)
		}
	}
}
