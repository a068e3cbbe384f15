package registry

import (
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	served "github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"cupola/rootfs/reference"
	"cupola/rootfs/registry/registrytest"
	"cupola/runtime/egress"
)

// TestTokens gives a registry a token instead of a user and a password.
func TestTokens(t *testing.T) {
	t.Parallel()
	reg := registrytest.New(t, registrytest.Token)
	s := New(Config{RootCAs: reg.CAs()})
	ref, want := reg.Push("team/app", registrytest.Image(t, v1.Config{}, registrytest.Tar(t, "a=1")))
	if got, err := s.Resolve(t.Context(), Place{Ref: ref, Auth: Auth{Token: "a-token"}}); err != nil || got != want {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
	if _, err := s.Resolve(t.Context(), Place{Ref: ref, Auth: Auth{Token: "another"}}); !errors.Is(err, ErrDenied) {
		t.Errorf("another token: got %v; want ErrDenied", err)
	}
}

func TestResolve(t *testing.T) {
	t.Parallel()
	for _, mode := range []registrytest.Login{registrytest.None, registrytest.Basic, registrytest.Token} {
		reg := registrytest.New(t, mode)
		s := New(Config{RootCAs: reg.CAs()})
		ref, want := reg.Push("team/app", registrytest.Image(t, v1.Config{}, registrytest.Tar(t, "a=1")))
		for _, r := range []reference.Reference{ref, ref.WithDigest(want)} {
			got, err := s.Resolve(t.Context(), Place{Ref: r, Auth: Auth{Username: "user", Password: "secret"}})
			if err != nil || got != want {
				t.Errorf("%s: got %q, %v; want %q", mode, got, err, want)
			}
		}
		if n := reg.Asked("GET", "/blobs/") + reg.Asked("GET", "/manifests/"); n > 0 {
			t.Errorf("%s: it fetched %d documents", mode, n)
		}
		if _, err := s.Resolve(t.Context(), Place{Ref: reg.Ref("team/none"), Auth: Auth{Username: "user", Password: "secret"}}); !errors.Is(err, ErrMissing) {
			t.Errorf("%s: got %v; want ErrMissing", mode, err)
		}
		for _, auth := range []Auth{{}, {Username: "user", Password: "wrong"}, {Password: "secret"}} {
			if _, err := s.Resolve(t.Context(), Place{Ref: ref, Auth: auth}); errors.Is(err, ErrDenied) != (mode != registrytest.None) {
				t.Errorf("%s %q: got %v", mode, auth, err)
			}
		}
	}
}

// TestPlainHTTP holds that nothing but loopback and what the operator named is spoken to without TLS, be it by a redirect.
func TestPlainHTTP(t *testing.T) {
	t.Parallel()
	c := New(Config{PlainHTTP: []string{"Registry.corp:5000"}})
	for host, want := range map[string]bool{"localhost": true, "localhost:80": true, "127.0.0.1:5000": true, "127.9.9.9": true, "[::1]:5000": true,
		"registry.corp:5000": true, "registry.corp": false, "registry.corp:5001": false, "10.0.0.1:5000": false, "reg.local": false, "docker.io": false} {
		if got := c.plainAllowed(host); got != want {
			t.Errorf("%s: got %t; want %t", host, got, want)
		}
	}
	plain := httptest.NewServer(served.New(served.Logger(log.New(io.Discard, "", 0))))
	defer plain.Close()
	s := New(Config{})
	r, err := reference.Parse("docker://" + strings.TrimPrefix(plain.URL, "http://") + "/a")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Resolve(t.Context(), Place{Ref: r, Auth: Auth{}}); !errors.Is(err, ErrMissing) {
		t.Errorf("got %v of a registry on loopback; want ErrMissing", err)
	}
	reg := registrytest.New(t, registrytest.None)
	s = New(Config{RootCAs: reg.CAs()})
	ref, _ := reg.Push("a", registrytest.Image(t, v1.Config{}, registrytest.Tar(t, "a=1")))
	reg.Spoil(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if strings.Contains(r.URL.Path, "/manifests/") {
			http.Redirect(w, r, "http://10.255.255.1/x", http.StatusTemporaryRedirect)
			return true
		}
		return false
	})
	if _, err := s.Resolve(t.Context(), Place{Ref: ref, Auth: Auth{}}); err == nil || !strings.Contains(err.Error(), "without TLS") {
		t.Errorf("got %v of a redirect to plain HTTP; want it refused", err)
	}
}

func TestUntrusted(t *testing.T) {
	t.Parallel()
	reg := registrytest.New(t, registrytest.None)
	s := New(Config{RootCAs: x509.NewCertPool()})
	ref, _ := reg.Push("a", registrytest.Image(t, v1.Config{}, registrytest.Tar(t, "a=1")))
	// On loopback the registry client tries plain HTTP as well, which no TLS server answers.
	if _, err := s.Resolve(t.Context(), Place{Ref: ref, Auth: Auth{}}); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("got %v of a registry with an untrusted certificate", err)
	}
}

func TestNoLinkLocal(t *testing.T) {
	t.Parallel()
	for address, ok := range map[string]bool{"169.254.169.254:80": false, "[fe80::1%eth0]:443": false, "[::ffff:169.254.169.254]:80": false, "127.0.0.1:80": true, "10.0.0.1:443": true, "[2001:db8::1]:443": true} {
		if err := (egress.Guard{Operator: true}).Control(t.Context(), "tcp", address, nil); (err == nil) != ok {
			t.Errorf("%s: got %v; want ok %t", address, err, ok)
		}
	}
}

// TestWhereUsersRegistriesAre has a user's registry lead to an address that is refused: by its own, by where it says that one
// logs in, and by where it says that a blob is. What operators name may be there.
func TestWhereUsersRegistriesAre(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	secret := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, `{"token":"of the cloud"}`)
	}))
	secret.Config.ConnState = func(net.Conn, http.ConnState) { asked.Add(1) }
	l, err := net.Listen("tcp4", "127.9.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	secret.Listener.Close()
	secret.Listener = l
	secret.StartTLS()
	defer secret.Close()
	hiding := &egress.Guard{Local: true, Containers: netip.MustParsePrefix("127.9.0.0/16")}
	reg := registrytest.New(t, registrytest.None)
	ref, digest := reg.Push("team/app", registrytest.Image(t, v1.Config{}, registrytest.Tar(t, "a=1")))
	for name, spoil := range map[string]func(http.ResponseWriter, *http.Request, http.Handler) bool{
		"login, CVE-2026-48978": func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
			w.Header().Set("WWW-Authenticate", `Bearer realm="`+secret.URL+`/latest/meta-data",service="x"`)
			w.WriteHeader(http.StatusUnauthorized)
			return true
		},
		"redirect": func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
			if r.URL.Path == "/v2/" {
				return false
			}
			http.Redirect(w, r, secret.URL+"/latest/meta-data", http.StatusTemporaryRedirect)
			return true
		},
	} {
		cfg := Config{RootCAs: reg.CAs()}
		cfg.RootCAs.AddCert(secret.Certificate())
		cfg.Guard = hiding
		s := New(cfg)
		reg.Spoil(spoil)
		if _, err := s.Resolve(t.Context(), Place{Ref: ref, Auth: Auth{}}); err == nil { // the library has its own rules for where one logs in
			t.Errorf("%s: it was resolved", name)
		}
	}
	reg.Spoil(nil)
	if n := asked.Load(); n > 0 {
		t.Errorf("%d requests came where none may", n)
	}
	cfg := Config{RootCAs: reg.CAs()}
	cfg.Guard = &egress.Guard{}
	s := New(cfg)
	if _, err := s.Resolve(t.Context(), Place{Ref: ref, Auth: Auth{}}); !errors.Is(err, egress.ErrAddress) {
		t.Errorf("got %v; want %v", err, egress.ErrAddress)
	}
	if got, err := s.Resolve(t.Context(), Place{Ref: ref, Trusted: true}); err != nil || got != digest {
		t.Errorf("an operator's pull: got %q, %v", got, err)
	}
	cfg.Mirrors = map[string][]string{"registry.test": {reg.Host}}
	s = New(cfg)
	mirrored := ref
	mirrored.Host = "registry.test"
	if got, err := s.Resolve(t.Context(), Place{Ref: mirrored, Auth: Auth{}}); err != nil || got != digest {
		t.Errorf("a mirror: got %q, %v", got, err)
	}
	cfg = Config{RootCAs: reg.CAs()}
	cfg.Guard, cfg.PlainHTTP = &egress.Guard{}, []string{reg.Host}
	s = New(cfg)
	if got, err := s.Resolve(t.Context(), Place{Ref: ref, Auth: Auth{}}); err != nil || got != digest {
		t.Errorf("one that may be spoken to without TLS: got %q, %v", got, err)
	}
}
