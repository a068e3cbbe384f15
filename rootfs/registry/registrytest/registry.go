// Package registrytest has a registry for tests, and images to put into it.
package registrytest

import (
	"archive/tar"
	"bytes"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	served "github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"cupola/rootfs/reference"
)

// Login is how a registry authenticates its clients.
type Login string

// The ways to log in, as "user" with the password "secret".
const (
	None  Login = "none"
	Basic Login = "basic"
	Token Login = "token"
)

// Registry is a real registry behind TLS, which notes its requests.
type Registry struct {
	*httptest.Server
	t    testing.TB
	Host string
	mode Login

	mu       sync.Mutex
	requests []string
	spoil    func(w http.ResponseWriter, r *http.Request, next http.Handler) bool // true: it answered
}

// New starts a registry that ends with the test.
func New(t testing.TB, mode Login) *Registry {
	t.Helper()
	reg := &Registry{t: t, mode: mode}
	inner := served.New(served.Logger(log.New(io.Discard, "", 0)))
	reg.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { reg.serve(w, r, inner) }))
	reg.Config.ErrorLog = log.New(io.Discard, "", 0)
	t.Cleanup(reg.Close)
	reg.Host = strings.TrimPrefix(reg.URL, "https://")
	return reg
}

const testToken = "a-token"

func (reg *Registry) serve(w http.ResponseWriter, r *http.Request, inner http.Handler) {
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
	case reg.mode == Basic && !right:
		w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
		http.Error(w, `{"errors":[{"code":"UNAUTHORIZED","message":"authentication required"}]}`, http.StatusUnauthorized)
		return
	case reg.mode == Token && r.Header.Get("Authorization") != "Bearer "+testToken:
		w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm="%s/token",service="test"`, reg.URL))
		http.Error(w, `{"errors":[{"code":"UNAUTHORIZED","message":"authentication required"}]}`, http.StatusUnauthorized)
		return
	}
	if spoil == nil || !spoil(w, r, inner) {
		inner.ServeHTTP(w, r)
	}
}

// Asked counts the requests since Forget with a method and a part of the path.
func (reg *Registry) Asked(method, part string) (n int) {
	reg.mu.Lock()
	defer reg.mu.Unlock()
	for _, r := range reg.requests {
		if strings.HasPrefix(r, method+" ") && strings.Contains(r, part) {
			n++
		}
	}
	return n
}

// All returns every request since Forget, as "GET /path".
func (reg *Registry) All() []string {
	reg.mu.Lock()
	defer reg.mu.Unlock()
	return slices.Clone(reg.requests)
}

// Forget forgets the requests.
func (reg *Registry) Forget() {
	reg.mu.Lock()
	defer reg.mu.Unlock()
	reg.requests = nil
}

// Spoil lets f answer requests: it reports whether it did.
func (reg *Registry) Spoil(f func(http.ResponseWriter, *http.Request, http.Handler) bool) {
	reg.mu.Lock()
	defer reg.mu.Unlock()
	reg.spoil = f
}

// CAs are those that vouch for the registry's certificate.
func (reg *Registry) CAs() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(reg.Certificate())
	return pool
}

func (reg *Registry) auth() []remote.Option {
	return []remote.Option{remote.WithTransport(reg.Client().Transport), remote.WithAuth(authn.FromConfig(authn.AuthConfig{Username: "user", Password: "secret"}))}
}

// Push puts an image or index into the registry and returns its reference and digest.
func (reg *Registry) Push(repo string, what remote.Taggable) (reference.Reference, string) {
	reg.t.Helper()
	tag, err := name.NewTag(reg.Host + "/" + repo)
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
	reg.Forget()
	return reg.Ref(repo), digest.String()
}

// Ref is a reference of an image in the registry.
func (reg *Registry) Ref(repo string) reference.Reference {
	reg.t.Helper()
	r, err := reference.Parse("docker://" + reg.Host + "/" + repo)
	if err != nil {
		reg.t.Fatal(err)
	}
	return r
}

// Image makes an image for this machine of layers' tars.
func Image(t testing.TB, cfg v1.Config, layers ...[]byte) v1.Image {
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
	return Platform(t, img, runtime.GOARCH, cfg)
}

// Platform makes img an image for a machine of linux.
func Platform(t testing.TB, img v1.Image, arch string, cfg v1.Config) v1.Image {
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

// Tar makes a tar of files by name, with links as "name -> target".
func Tar(t testing.TB, files ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range files {
		h, body := &tar.Header{Name: f, Mode: 0o644, Typeflag: tar.TypeReg}, ""
		if from, to, ok := strings.Cut(f, " -> "); ok {
			h.Name, h.Linkname, h.Typeflag = from, to, tar.TypeSymlink
		} else if from, text, ok := strings.Cut(f, "="); ok {
			h.Name, h.Size, body = from, int64(len(text)), text
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, body); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// Noise is text that no compression shortens.
func Noise(seed uint64, n int) string {
	b := make([]byte, n)
	r := rand.NewChaCha8([32]byte{byte(seed)})
	_, _ = r.Read(b) // it does not fail
	return string(b)
}
