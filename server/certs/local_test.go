package certs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cupola/runtime/authority"
	"cupola/store"
	"cupola/store/cf"
)

// world is a Source over a store, with clients that trust the CA alone.
type world struct {
	*Source
	t      *testing.T
	routed map[string]bool
	roots  *x509.CertPool
}

func newWorld(t *testing.T, domain string, files Files) *world {
	t.Helper()
	dir := t.TempDir()
	s, err := store.Open(store.Config{Dir: filepath.Join(dir, "db"), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	w := &world{t: t, routed: map[string]bool{}, roots: x509.NewCertPool()}
	ca, err := authority.Open(authority.Config{CertFile: dir + "/ca.pem", KeyFile: dir + "/ca.key", Name: "test"})
	if err != nil {
		t.Fatal(err)
	}
	w.roots.AppendCertsFromPEM(ca.Trust())
	local := &Local{Authority: func() (*authority.Authority, error) { return ca, nil }, APIHost: "api." + domain, Domain: domain, Log: slog.New(slog.DiscardHandler)}
	if w.Source, err = New(Config{Local: local, Store: s, Files: files, Routed: func(host string) bool { return w.routed[host] }, Log: slog.New(slog.DiscardHandler)}); err != nil {
		t.Fatal(err)
	}
	return w
}

// write changes rows, and lets the source read them.
func (w *world) write(f func(tx *store.Tx) error) {
	w.t.Helper()
	if err := w.Store.Write(w.t.Context(), f); err != nil {
		w.t.Fatal(err)
	}
	if err := w.Set(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) domain(name string, internal bool) *cf.Domain {
	w.t.Helper()
	d := &cf.Domain{Name: name, Internal: internal}
	w.write(func(tx *store.Tx) error { return store.Domains.Insert(tx, d) })
	return d
}

// shown returns the certificate for a name.
func (w *world) shown(name string) *x509.Certificate {
	w.t.Helper()
	c, err := w.Get(&tls.ClientHelloInfo{ServerName: name})
	if err != nil {
		w.t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(c.Certificate[0])
	if err != nil {
		w.t.Fatal(err)
	}
	return leaf
}

// accepts reports whether a client that trusts the CA accepts what is shown for a name.
func (w *world) accepts(name string) bool {
	w.t.Helper()
	_, err := w.shown(name).Verify(x509.VerifyOptions{DNSName: name, Roots: w.roots})
	return err == nil
}

// TestClientsAcceptEveryMappedName wants a certificate that fits for each name of the
// system, of a domain and of a route, at any depth, and for no other.
func TestClientsAcceptEveryMappedName(t *testing.T) {
	for _, system := range []string{"localhost", "cf.example.com"} {
		w := newWorld(t, system, Files{})
		w.domain(system, false)
		w.domain("shared.example.org", false)
		w.domain("apps.internal", true)
		w.routed["app.localhost"], w.routed["a.b.c.deep.example"], w.routed["x.inside.example"] = true, true, true
		for _, name := range []string{"api." + system, "console." + system, "uaa." + system, "login." + system, "log-cache." + system, "localhost", "app.localhost",
			"shared.example.org", "app.shared.example.org", "App.Shared.Example.ORG", "a.b.c.deep.example", "x.inside.example"} {
			if !w.accepts(name) {
				t.Errorf("%s: %s is refused: got %q", system, name, w.shown(name).DNSNames)
			}
		}
		before := len(w.Local.made)
		for _, name := range []string{"a.shared.example.org", "stranger.example", "a.b.shared.example.org", "x.apps.internal", "apps.internal", "", "127.0.0.1"} {
			leaf := w.shown(name)
			if leaf.VerifyHostname("stranger.example") == nil || leaf.VerifyHostname("x.apps.internal") == nil {
				t.Errorf("%s: got a certificate for an unmapped name: %q", name, leaf.DNSNames)
			}
		}
		if now := len(w.Local.made); now != before {
			t.Errorf("%d certificates were made for unmapped names", now-before)
		}
		if err := w.shown("").VerifyHostname("127.0.0.1"); err != nil {
			t.Error("by address:", err)
		}
	}
}

// TestCertificatesAreBounded asks for more mapped names than are kept.
// A client that names a host must not meet addresses: the CA that 'cupola trust --only'
// trusts signs none that the machine had no more when it was made.
func TestAddressesAreForThoseWhoNameNoHost(t *testing.T) {
	w := newWorld(t, "apps.example.com", Files{})
	for _, name := range []string{"api.apps.example.com", "localhost", "stranger.example"} {
		if ips := w.shown(name).IPAddresses; len(ips) > 0 {
			t.Errorf("%s: got addresses %v; want none", name, ips)
		}
	}
	c := w.shown("")
	for _, host := range []string{"127.0.0.1", "::1", "api.apps.example.com"} {
		if err := c.VerifyHostname(host); err != nil {
			t.Error(err)
		}
	}
}

func TestCertificatesAreBounded(t *testing.T) {
	w := newWorld(t, "localhost", Files{})
	w.Routed = func(string) bool { return true }
	for n := range maxMade + 10 {
		w.shown("n" + big.NewInt(int64(n)).String() + ".localhost")
	}
	if n := len(w.Local.made); n > maxMade {
		t.Errorf("got %d in memory; want at most %d", n, maxMade)
	}
}

// TestCertificatesAreRenewed wants another one long before the end, without a restart.
func TestCertificatesAreRenewed(t *testing.T) {
	w := newWorld(t, "localhost", Files{})
	ca, err := w.Local.Authority()
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		l := &Local{Authority: func() (*authority.Authority, error) { return ca, nil }, APIHost: "api.localhost", Domain: "localhost", Log: w.Log}
		first, err := l.of([]string{"app.localhost"})
		if err != nil {
			t.Fatal(err)
		}
		for range 400 {
			time.Sleep(24 * time.Hour)
			now, err := l.of([]string{"app.localhost"})
			if err != nil {
				t.Fatal(err)
			}
			leaf, err := x509.ParseCertificate(now.Certificate[0])
			if err != nil {
				t.Fatal(err)
			}
			if left := time.Until(leaf.NotAfter); left < 59*24*time.Hour {
				t.Fatalf("only %s are left", left)
			}
			if now != first {
				return
			}
		}
		t.Error("the certificate was not renewed")
	})
}

// pair makes a self-signed certificate and its key, in PEM.
func pair(t *testing.T, until time.Time, names ...string) (cert, key string) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), DNSNames: names, NotBefore: time.Now().Add(-time.Hour), NotAfter: until}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &k.PublicKey, k)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	return string(authority.PEM(der)), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}))
}

// TestGivenCertificatesComeFirst gives certificates to domains one below the other.
func TestGivenCertificatesComeFirst(t *testing.T) {
	w := newWorld(t, "localhost", Files{})
	above, below := w.domain("example.org", false), w.domain("sub.example.org", false)
	give := func(d *cf.Domain, names ...string) {
		cert, key := pair(t, time.Now().Add(time.Hour), names...)
		w.write(func(tx *store.Tx) error {
			return store.DomainCertificates.Insert(tx, &cf.DomainCertificate{Resource: cf.Resource{GUID: d.GUID}, Certificate: cert, Key: key})
		})
	}
	given := func(name string) bool { return w.shown(name).Issuer.CommonName == "" }
	give(above, "example.org", "*.example.org", "deep.sub.example.org")
	for name, want := range map[string]bool{"example.org": true, "a.example.org": true, "a.sub.example.org": false, "deep.sub.example.org": true, "sub.example.org": true} {
		if given(name) != want {
			t.Errorf("%s: got %q", name, w.shown(name).DNSNames)
		}
	}
	give(below, "*.sub.example.org")
	if !given("a.sub.example.org") || !given("sub.example.org") {
		t.Error("got no certificate of the domain below")
	}
	w.write(func(tx *store.Tx) error { return store.Domains.Delete(tx, below.GUID) })
	if given("a.sub.example.org") {
		t.Error("a deleted domain's certificate is shown")
	}
}

// TestDefaultCertificateFollowsItsFiles replaces the files, first by a pair that does not
// belong together.
func TestDefaultCertificateFollowsItsFiles(t *testing.T) {
	dir := t.TempDir()
	files := Files{filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")}
	put := func(cert, key string) {
		t.Helper()
		for name, text := range map[string]string{files.Cert: cert, files.Key: key} {
			if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	cert, key := pair(t, time.Now().Add(time.Hour), "*.first.example")
	put(cert, key)
	w := newWorld(t, "localhost", files)
	w.domain("first.example", false)
	for name, want := range map[string]bool{"a.first.example": true, "stranger.example": true, "": true, "127.0.0.1": true, "api.localhost": false} {
		if got := w.shown(name).VerifyHostname("a.first.example") == nil; got != want && name != "api.localhost" {
			t.Errorf("%q: got %q", name, w.shown(name).DNSNames)
		}
	}
	next, nextKey := pair(t, time.Now().Add(time.Hour), "a.second.example")
	put(next, key)
	w.refreshFiles()
	if w.shown("").VerifyHostname("a.first.example") != nil {
		t.Error("a pair that does not belong together took the place of the default")
	}
	put(next, nextKey)
	w.refreshFiles()
	if w.shown("").VerifyHostname("a.second.example") != nil {
		t.Error("the files changed, and the certificate of before is shown")
	}
}

func TestPairsThatDoNotFit(t *testing.T) {
	cert, key := pair(t, time.Now().Add(time.Hour), "a.example")
	other, otherKey := pair(t, time.Now().Add(time.Hour), "b.example")
	for _, c := range []struct{ cert, key, want string }{
		{cert, otherKey, "the private key does not belong to the certificate"},
		{"x", key, "the certificate is not in PEM"},
		{key, key, `the certificate holds a PEM block "PRIVATE KEY"`},
		{cert, "x", "the private key is not in PEM"},
		{cert + other, key, "the chain is out of order"},
	} {
		if _, err := cf.ParsePair(c.cert, c.key); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v; want %s", err, c.want)
		}
	}
}

// TestHandshakes speaks TLS as a client does, over one listener.
func TestHandshakes(t *testing.T) {
	w := newWorld(t, "localhost", Files{})
	w.domain("shop.example", false)
	w.routed["deep.a.b.example"] = true
	l, err := tls.Listen("tcp", "127.0.0.1:0", w.TLS(Callers{Guards: func(string) (string, bool) { return "", false }}))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() { defer conn.Close(); _ = conn.(*tls.Conn).HandshakeContext(t.Context()) }()
		}
	}()
	for name, good := range map[string]bool{"api.localhost": true, "www.shop.example": true, "deep.a.b.example": true, "other.b.example": false} {
		conn, err := (&tls.Dialer{NetDialer: &net.Dialer{}, Config: &tls.Config{ServerName: name, RootCAs: w.roots}}).DialContext(t.Context(), "tcp", l.Addr().String())
		if (err == nil) != good {
			t.Errorf("%s: got %v", name, err)
		}
		if err == nil {
			conn.Close()
		}
	}
}
