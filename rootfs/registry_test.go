package rootfs

import (
	"bytes"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"cupola/rootfs/reference"
	"cupola/runtime/egress"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

var someDigest = "sha256:" + strings.Repeat("0a", 32)

// login is how a test's registry lets its clients in.
type login string

const (
	loginNone  login = "none"
	loginBasic login = "basic"
	loginToken login = "token"
)

// testRegistry is a real registry behind TLS, which writes down what it is asked.
type testRegistry struct {
	*httptest.Server
	t    testing.TB
	host string
	mode login

	mu       sync.Mutex
	requests []string
	spoil    func(w http.ResponseWriter, r *http.Request, next http.Handler) bool // true: it answered
}

func newRegistry(t testing.TB, mode login) *testRegistry {
	t.Helper()
	reg := &testRegistry{t: t, mode: mode}
	inner := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	reg.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { reg.serve(w, r, inner) }))
	reg.Config.ErrorLog = log.New(io.Discard, "", 0)
	t.Cleanup(reg.Close)
	reg.host = strings.TrimPrefix(reg.URL, "https://")
	return reg
}

const testToken = "a-token"

func (reg *testRegistry) serve(w http.ResponseWriter, r *http.Request, inner http.Handler) {
	reg.mu.Lock()
	reg.requests = append(reg.requests, r.Method+" "+r.URL.Path)
	spoil := reg.spoil
	reg.mu.Unlock()
	user, password, _ := r.BasicAuth()
	right := user == "user" && password == "secret"
	switch {
	case r.URL.Path == "/token":
		if !right {
			http.Error(w, `{"errors":[{"code":"DENIED","message":"bad creds"}]}`, http.StatusUnauthorized)
			return
		}
		json.NewEncoder(w).Encode(map[string]string{"token": testToken})
		return
	case reg.mode == loginBasic && !right:
		w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
		http.Error(w, `{"errors":[{"code":"UNAUTHORIZED","message":"authentication required"}]}`, http.StatusUnauthorized)
		return
	case reg.mode == loginToken && r.Header.Get("Authorization") != "Bearer "+testToken:
		w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm="%s/token",service="test"`, reg.URL))
		http.Error(w, `{"errors":[{"code":"UNAUTHORIZED","message":"authentication required"}]}`, http.StatusUnauthorized)
		return
	}
	if spoil == nil || !spoil(w, r, inner) {
		inner.ServeHTTP(w, r)
	}
}

// asked returns what the registry was asked since the last call, but for logins.
func (reg *testRegistry) asked(method, part string) (n int) {
	reg.mu.Lock()
	defer reg.mu.Unlock()
	for _, r := range reg.requests {
		if strings.HasPrefix(r, method+" ") && strings.Contains(r, part) {
			n++
		}
	}
	return n
}

// all returns every request.
func (reg *testRegistry) all() []string {
	reg.mu.Lock()
	defer reg.mu.Unlock()
	return slices.Clone(reg.requests)
}

func (reg *testRegistry) forget() {
	reg.mu.Lock()
	defer reg.mu.Unlock()
	reg.requests = nil
}

func (reg *testRegistry) setSpoil(f func(http.ResponseWriter, *http.Request, http.Handler) bool) {
	reg.mu.Lock()
	defer reg.mu.Unlock()
	reg.spoil = f
}

// config has the registry's certificate trusted.
func (reg *testRegistry) config() Registries {
	pool := x509.NewCertPool()
	pool.AddCert(reg.Certificate())
	return Registries{RootCAs: pool}
}

func (reg *testRegistry) auth() []remote.Option {
	return []remote.Option{remote.WithTransport(reg.Client().Transport), remote.WithAuth(authn.FromConfig(authn.AuthConfig{Username: "user", Password: "secret"}))}
}

// push puts an image or index into the registry and returns its reference and digest.
func (reg *testRegistry) push(repo string, what remote.Taggable) (reference.Reference, string) {
	reg.t.Helper()
	tag, err := name.NewTag(reg.host + "/" + repo)
	if err != nil {
		reg.t.Fatal(err)
	}
	var digest v1.Hash
	switch w := what.(type) {
	case v1.ImageIndex:
		if err = remote.WriteIndex(tag, w, reg.auth()...); err == nil {
			digest, err = w.Digest()
		}
	case v1.Image:
		if err = remote.Write(tag, w, reg.auth()...); err == nil {
			digest, err = w.Digest()
		}
	default:
		err = remote.Put(tag, what, reg.auth()...)
	}
	if err != nil {
		reg.t.Fatal(err)
	}
	reg.forget()
	return reg.ref(repo), digest.String()
}

func (reg *testRegistry) ref(repo string) reference.Reference {
	reg.t.Helper()
	r, err := reference.Parse("docker://" + reg.host + "/" + repo)
	if err != nil {
		reg.t.Fatal(err)
	}
	return r
}

// imageOf makes an image for this machine of layers' tars.
func imageOf(t testing.TB, cfg v1.Config, layers ...[]byte) v1.Image {
	t.Helper()
	img := empty.Image
	for _, text := range layers {
		l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text)), nil })
		if err != nil {
			t.Fatal(err)
		}
		if img, err = mutate.AppendLayers(img, l); err != nil {
			t.Fatal(err)
		}
	}
	return platform(t, img, runtime.GOARCH, cfg)
}

func platform(t testing.TB, img v1.Image, arch string, cfg v1.Config) v1.Image {
	t.Helper()
	file, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Config = "linux", arch, cfg
	if img, err = mutate.ConfigFile(img, file); err != nil {
		t.Fatal(err)
	}
	return img
}

func TestResolve(t *testing.T) {
	t.Parallel()
	for _, mode := range []login{loginNone, loginBasic, loginToken} {
		reg := newRegistry(t, mode)
		s := newStore(t, Config{Registries: reg.config()})
		ref, want := reg.push("team/app", imageOf(t, v1.Config{}, tarText(t, "a=1")))
		for _, r := range []reference.Reference{ref, ref.WithDigest(want)} {
			got, err := s.Resolve(t.Context(), r, Auth{"user", "secret"})
			if err != nil || got != want {
				t.Errorf("%s: got %q, %v; want %q", mode, got, err, want)
			}
		}
		if n := reg.asked("GET", "/blobs/") + reg.asked("GET", "/manifests/"); n > 0 {
			t.Errorf("%s: it fetched %d documents", mode, n)
		}
		if _, err := s.Resolve(t.Context(), reg.ref("team/none"), Auth{"user", "secret"}); !isError(err, ErrImageMissing) {
			t.Errorf("%s: got %v; want ErrImageMissing", mode, err)
		}
		for _, auth := range []Auth{{}, {"user", "wrong"}, {"", "secret"}} {
			if _, err := s.Resolve(t.Context(), ref, auth); isError(err, ErrImageDenied) != (mode != loginNone) {
				t.Errorf("%s %q: got %v", mode, auth, err)
			}
		}
	}
}

// TestPlainHTTP holds that nothing but loopback and what the operator named is spoken to without TLS, be it by a redirect.
func TestPlainHTTP(t *testing.T) {
	t.Parallel()
	c := newClient(Registries{PlainHTTP: []string{"Registry.corp:5000"}})
	for host, want := range map[string]bool{"localhost": true, "localhost:80": true, "127.0.0.1:5000": true, "127.9.9.9": true, "[::1]:5000": true,
		"registry.corp:5000": true, "registry.corp": false, "registry.corp:5001": false, "10.0.0.1:5000": false, "reg.local": false, "docker.io": false} {
		if got := c.plainAllowed(host); got != want {
			t.Errorf("%s: got %t; want %t", host, got, want)
		}
	}
	plain := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer plain.Close()
	s := newStore(t, Config{})
	r, err := reference.Parse("docker://" + strings.TrimPrefix(plain.URL, "http://") + "/a")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Resolve(t.Context(), r, Auth{}); !isError(err, ErrImageMissing) {
		t.Errorf("got %v of a registry on loopback; want ErrImageMissing", err)
	}
	reg := newRegistry(t, loginNone)
	s = newStore(t, Config{Registries: reg.config()})
	ref, _ := reg.push("a", imageOf(t, v1.Config{}, tarText(t, "a=1")))
	reg.setSpoil(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if strings.Contains(r.URL.Path, "/manifests/") {
			http.Redirect(w, r, "http://10.255.255.1/x", http.StatusTemporaryRedirect)
			return true
		}
		return false
	})
	if _, err := s.Resolve(t.Context(), ref, Auth{}); err == nil || !strings.Contains(err.Error(), "without TLS") {
		t.Errorf("got %v of a redirect to plain HTTP; want it refused", err)
	}
}

func TestUntrusted(t *testing.T) {
	t.Parallel()
	reg := newRegistry(t, loginNone)
	s := newStore(t, Config{Registries: Registries{RootCAs: x509.NewCertPool()}})
	ref, _ := reg.push("a", imageOf(t, v1.Config{}, tarText(t, "a=1")))
	// On loopback the registry client tries plain HTTP as well, which no TLS server answers.
	if _, err := s.Resolve(t.Context(), ref, Auth{}); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("got %v of a registry whose certificate nobody vouches for", err)
	}
}

func isError(err, want error) bool { return errors.Is(err, want) }

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
	reg := newRegistry(t, loginNone)
	ref, digest := reg.push("team/app", imageOf(t, v1.Config{}, tarText(t, "a=1")))
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
		cfg := reg.config()
		cfg.RootCAs.AddCert(secret.Certificate())
		cfg.Guard = hiding
		s := newStore(t, Config{Registries: cfg})
		reg.setSpoil(spoil)
		if _, err := s.Resolve(t.Context(), ref, Auth{}); err == nil { // the library has rules of its own for where one logs in
			t.Errorf("%s: it was resolved", name)
		}
	}
	reg.setSpoil(nil)
	if n := asked.Load(); n > 0 {
		t.Errorf("%d requests came where none may", n)
	}
	cfg := reg.config()
	cfg.Guard = &egress.Guard{}
	s := newStore(t, Config{Registries: cfg})
	if _, err := s.Resolve(t.Context(), ref, Auth{}); !errors.Is(err, egress.ErrAddress) {
		t.Errorf("got %v; want %v", err, egress.ErrAddress)
	}
	if got, err := s.resolve(t.Context(), place{ref: ref, trusted: true}); err != nil || got != digest {
		t.Errorf("an operator's pull: got %q, %v", got, err)
	}
	cfg.Mirrors = map[string][]string{"registry.test": {reg.host}}
	s = newStore(t, Config{Registries: cfg})
	mirrored := ref
	mirrored.Host = "registry.test"
	if got, err := s.Resolve(t.Context(), mirrored, Auth{}); err != nil || got != digest {
		t.Errorf("a mirror: got %q, %v", got, err)
	}
	cfg = reg.config()
	cfg.Guard, cfg.PlainHTTP = &egress.Guard{}, []string{reg.host}
	s = newStore(t, Config{Registries: cfg})
	if got, err := s.Resolve(t.Context(), ref, Auth{}); err != nil || got != digest {
		t.Errorf("one that may be spoken to without TLS: got %q, %v", got, err)
	}
}
