package main

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"

	"github.com/google/go-containerregistry/pkg/name"
	ggcr "github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// registry serves images from memory, and counts the bytes of blobs.
type registry struct {
	server *httptest.Server
	moved  atomic.Int64
}

// image is what of an image in the registry must be known.
type image struct {
	repository string
	layers     []*layer
	files      int
	config     int64 // bytes
}

// bytes are those of all layers, as they are moved.
func (i image) bytes() (n int64) {
	for _, l := range i.layers {
		n += l.size
	}
	return n
}

func newRegistry() *registry {
	inner := ggcr.New(ggcr.Logger(log.New(io.Discard, "", 0)))
	r := &registry{}
	r.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Method == http.MethodGet && strings.Contains(req.URL.Path, "/blobs/") {
			w = &meter{w, &r.moved}
		}
		inner.ServeHTTP(w, req)
	}))
	return r
}

// meter counts what is written.
type meter struct {
	http.ResponseWriter
	n *atomic.Int64
}

// Write writes, and counts.
func (m *meter) Write(p []byte) (int, error) {
	n, err := m.ResponseWriter.Write(p)
	m.n.Add(int64(n))
	return n, err
}

func (r *registry) close() { r.server.Close() }

func (r *registry) reference(i image) reference {
	return reference{strings.TrimPrefix(r.server.URL, "http://"), i.repository}
}

// fill puts two images into the registry that share all layers but the top.
func (r *registry) fill(bytes int64) (first, second image, err error) {
	layers, err := makeLayers(bytes)
	if err != nil {
		return first, second, err
	}
	top := len(layers) - 1
	first, second = image{repository: "bench/first", layers: layers[:top]}, image{repository: "bench/second"}
	second.layers = append(append(second.layers, layers[:top-1]...), layers[top])
	for _, i := range []*image{&first, &second} {
		if err := r.put(i); err != nil {
			return first, second, fmt.Errorf("push %s: %w", i.repository, err)
		}
	}
	return first, second, nil
}

func (r *registry) put(i *image) error {
	var adds []mutate.Addendum
	for _, l := range i.layers {
		adds = append(adds, mutate.Addendum{Layer: l.layer})
		i.files += l.files
	}
	img, err := mutate.Append(empty.Image, adds...)
	if err != nil {
		return err
	}
	img, err = mutate.ConfigFile(img, withPlatform(img))
	if err != nil {
		return err
	}
	text, err := img.RawConfigFile()
	if err != nil {
		return err
	}
	i.config = int64(len(text))
	ref, err := name.ParseReference(r.reference(*i).String())
	if err != nil {
		return err
	}
	return remote.Write(ref, img)
}

// withPlatform names the machine's platform, which all three look at.
func withPlatform(img v1.Image) *v1.ConfigFile {
	c, err := img.ConfigFile()
	if err != nil {
		panic(err) // it is made of values here
	}
	c = c.DeepCopy()
	c.OS, c.Architecture = "linux", goarch
	c.Config.Cmd = []string{"/bin/true"}
	return c
}
