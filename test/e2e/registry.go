package e2e

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"cupola/test/loopback"
)

// ImageRegistry is a registry on this machine that asks for a password.
type ImageRegistry struct {
	Host     string
	CA       string // the file of the CA that vouches for it; "" where it speaks plain HTTP
	Requests atomic.Int64
	Marks    chan struct{} // of marked requests that its log has told of; nil where requests are counted at once
	Stop     func()
	Spoil    func(http.ResponseWriter, *http.Request) bool // true: it has answered; nil for none
	Public   bool                                          // it asks for no password
}

// Mark is the user agent of requests that do not count.
const Mark = "mark of a test"

// Asked is how many requests there were, all that were answered among them.
func (r *ImageRegistry) Asked(t *testing.T) int64 {
	t.Helper()
	if r.Marks == nil {
		return r.Requests.Load()
	}
	req, err := http.NewRequest("GET", "https://"+r.Host+"/v2/", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("User-Agent", Mark)
	res, err := (&http.Client{Transport: r.transport(t)}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	select {
	case <-r.Marks:
	case <-time.After(time.Minute):
		t.Fatal("the registry did not tell of a request")
	}
	return r.Requests.Load()
}

// RegistryUser and RegistryPassword are the credentials that the tests' registries want.
const (
	RegistryUser     = "joe"
	RegistryPassword = "open sesame"
)

// StartRegistry starts a registry that speaks plain HTTP.
func StartRegistry(t *testing.T) *ImageRegistry {
	t.Helper()
	r := &ImageRegistry{}
	s := newServer(t, r.handler())
	s.Start()
	r.Stop = s.Close
	t.Cleanup(s.Close)
	r.Host = strings.TrimPrefix(s.URL, "http://")
	return r
}

// StartTLSRegistry starts a registry that a CA of the test vouches for.
func StartTLSRegistry(t *testing.T) *ImageRegistry {
	t.Helper()
	files := NewCertificate(t)
	pair, err := tls.LoadX509KeyPair(files.Cert, files.Key)
	if err != nil {
		t.Fatal(err)
	}
	r := &ImageRegistry{CA: files.CA}
	s := newServer(t, r.handler())
	s.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // of clients that do not trust it
	s.StartTLS()
	r.Stop = s.Close
	t.Cleanup(s.Close)
	r.Host = strings.TrimPrefix(s.URL, "https://")
	return r
}

// newServer is a server whose port stays reserved once it is stopped.
func newServer(t *testing.T, h http.Handler) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.Listener.Close()
	s.Listener = loopback.ListenFixed(t)
	return s
}

// handler counts requests, and serves those with the password.
func (r *ImageRegistry) handler() http.Handler {
	inner := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.Requests.Add(1)
		if u, p, _ := req.BasicAuth(); !r.Public && (u != RegistryUser || p != RegistryPassword) {
			w.Header().Set("WWW-Authenticate", `Basic realm="images"`)
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		if r.Spoil == nil || !r.Spoil(w, req) {
			inner.ServeHTTP(w, req)
		}
	})
}

// Vanish stops the registry, and counts connections from then on.
func (r *ImageRegistry) Vanish(t *testing.T) (knocks *atomic.Int64) {
	t.Helper()
	r.Stop()
	var l net.Listener
	Eventually(t, time.Minute, func() string {
		var err error
		if l, err = net.Listen("tcp", r.Host); err != nil { // a process that another test starts has the old socket until it executes
			return err.Error()
		}
		return ""
	})
	t.Cleanup(func() { l.Close() })
	knocks = &atomic.Int64{}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			knocks.Add(1)
			c.Close()
		}
	}()
	return knocks
}

// Push pushes an image of layers to the repository stacks/small under a tag, and returns its digest.
func (r *ImageRegistry) Push(t *testing.T, tag string, config v1.Config, layers ...[]byte) (digest string) {
	t.Helper()
	return r.PushTo(t, "stacks/small:"+tag, config, layers...)
}

// PushTo pushes an image of layers to a repository with a tag, and returns its digest.
func (r *ImageRegistry) PushTo(t *testing.T, to string, config v1.Config, layers ...[]byte) (digest string) {
	t.Helper()
	image := empty.Image
	for _, l := range layers {
		var err error
		if image, err = mutate.AppendLayers(image, static.NewLayer(l, types.DockerUncompressedLayer)); err != nil {
			t.Fatal(err)
		}
	}
	image, err := mutate.Config(image, config)
	if err != nil {
		t.Fatal(err)
	}
	sum, err := image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(r.ref(t, to), image, r.Options(t)...); err != nil {
		t.Fatal(err)
	}
	return sum.String()
}

// Remove deletes an image, as the registry's user may.
func (r *ImageRegistry) Remove(t *testing.T, digest string) {
	t.Helper()
	if err := remote.Delete(r.ref(t, "stacks/small@"+digest), r.Options(t)...); err != nil {
		t.Fatal(err)
	}
}

func (r *ImageRegistry) ref(t *testing.T, in string) name.Reference {
	t.Helper()
	ref, err := name.ParseReference(r.Host + "/" + in)
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

// Options are the credentials and the transport for a client of the registry.
func (r *ImageRegistry) Options(t *testing.T) []remote.Option {
	t.Helper()
	return []remote.Option{remote.WithAuth(&authn.Basic{Username: RegistryUser, Password: RegistryPassword}), remote.WithTransport(r.transport(t))}
}

// transport trusts the registry.
func (r *ImageRegistry) transport(t *testing.T) *http.Transport {
	t.Helper()
	transport := http.DefaultTransport.(*http.Transport).Clone()
	if r.CA != "" {
		text, err := os.ReadFile(r.CA)
		if err != nil {
			t.Fatal(err)
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: x509.NewCertPool()}
		transport.TLSClientConfig.RootCAs.AppendCertsFromPEM(text)
	}
	return transport
}
