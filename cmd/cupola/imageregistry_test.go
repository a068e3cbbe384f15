package main

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
)

// imageRegistry is a registry on this machine that asks for a password.
type imageRegistry struct {
	host     string
	ca       string // the file of the CA that vouches for it; "" where it speaks plain HTTP
	requests atomic.Int64
	marks    chan struct{} // of marked requests that its log has told of; nil where requests are counted at once
	stop     func()
	spoil    func(http.ResponseWriter, *http.Request) bool // true: it has answered; nil for none
}

// mark is the user agent of requests that do not count.
const mark = "mark of a test"

// asked is how many requests there were, all that were answered among them.
func (r *imageRegistry) asked(t *testing.T) int64 {
	t.Helper()
	if r.marks == nil {
		return r.requests.Load()
	}
	req, err := http.NewRequest("GET", "https://"+r.host+"/v2/", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("User-Agent", mark)
	res, err := (&http.Client{Transport: r.transport(t)}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	select {
	case <-r.marks:
	case <-time.After(20 * time.Second):
		t.Fatal("the registry did not tell of a request")
	}
	return r.requests.Load()
}

const (
	registryUser     = "joe"
	registryPassword = "open sesame"
)

// startRegistry starts a registry that speaks plain HTTP.
func startRegistry(t *testing.T) *imageRegistry {
	t.Helper()
	r := &imageRegistry{}
	s := httptest.NewServer(r.handler())
	r.stop = s.Close
	t.Cleanup(s.Close)
	r.host = strings.TrimPrefix(s.URL, "http://")
	return r
}

// startTLSRegistry starts a registry that a CA of the test vouches for.
func startTLSRegistry(t *testing.T) *imageRegistry {
	t.Helper()
	files := newCertificate(t)
	pair, err := tls.LoadX509KeyPair(files.cert, files.key)
	if err != nil {
		t.Fatal(err)
	}
	r := &imageRegistry{ca: files.ca}
	s := httptest.NewUnstartedServer(r.handler())
	s.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // of clients that do not trust it
	s.StartTLS()
	r.stop = s.Close
	t.Cleanup(s.Close)
	r.host = strings.TrimPrefix(s.URL, "https://")
	return r
}

// handler counts requests, and serves those with the password.
func (r *imageRegistry) handler() http.Handler {
	inner := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.requests.Add(1)
		if u, p, _ := req.BasicAuth(); u != registryUser || p != registryPassword {
			w.Header().Set("WWW-Authenticate", `Basic realm="images"`)
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		if r.spoil == nil || !r.spoil(w, req) {
			inner.ServeHTTP(w, req)
		}
	})
}

// vanish stops the registry. What counts is then who still knocks at its door.
func (r *imageRegistry) vanish(t *testing.T) (knocks *atomic.Int64) {
	t.Helper()
	r.stop()
	l, err := net.Listen("tcp", r.host)
	if err != nil {
		t.Fatal(err)
	}
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

// push puts an image of layers under a tag, and gives its digest.
func (r *imageRegistry) push(t *testing.T, tag string, config v1.Config, layers ...[]byte) (digest string) {
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
	if err := remote.Write(r.ref(t, ":"+tag), image, r.options(t)...); err != nil {
		t.Fatal(err)
	}
	return sum.String()
}

// remove deletes an image, as the registry's user may.
func (r *imageRegistry) remove(t *testing.T, digest string) {
	t.Helper()
	if err := remote.Delete(r.ref(t, "@"+digest), r.options(t)...); err != nil {
		t.Fatal(err)
	}
}

func (r *imageRegistry) ref(t *testing.T, tagOrDigest string) name.Reference {
	t.Helper()
	ref, err := name.ParseReference(r.host + "/stacks/small" + tagOrDigest)
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

func (r *imageRegistry) options(t *testing.T) []remote.Option {
	t.Helper()
	return []remote.Option{remote.WithAuth(&authn.Basic{Username: registryUser, Password: registryPassword}), remote.WithTransport(r.transport(t))}
}

// transport trusts the registry.
func (r *imageRegistry) transport(t *testing.T) *http.Transport {
	t.Helper()
	transport := http.DefaultTransport.(*http.Transport).Clone()
	if r.ca != "" {
		text, err := os.ReadFile(r.ca)
		if err != nil {
			t.Fatal(err)
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: x509.NewCertPool()}
		transport.TLSClientConfig.RootCAs.AppendCertsFromPEM(text)
	}
	return transport
}
