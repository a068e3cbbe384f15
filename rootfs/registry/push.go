package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	v1partial "github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"cupola/rootfs/reference"
	"cupola/runtime/fault"
)

// Image is an image to push: its documents, and its layers by their digests.
type Image struct {
	Digest           string // of the manifest
	Manifest, Config []byte
	Layers           []Layer // the lowest first
}

// Layer is a layer of an image to push, as it is moved.
type Layer struct {
	Digest, DiffID string
	MediaType      string
	Bytes          int64
	From           []string `json:",omitempty"` // repositories that had it when it was pulled, as host/name
}

// Push is an image on its way into a registry.
type Push struct {
	Image
	To   reference.Reference // with a tag
	Auth Auth                // the zero value: what the configuration of docker or podman has for the registry, as this user
	// Open opens a layer. Calls may overlap, and repeat for a layer that was not read to its end.
	Open     func(ctx context.Context, layer string) (io.ReadCloser, error)
	Progress func(done, total int64) // nil; never called twice at the same time
}

// What a registry said of a push, besides being unreachable.
var (
	errPushDenied = errors.New("the registry refuses access: there are no credentials for it, they are wrong, or they may not write there")
	errPushBroken = errors.New("the registry broke off; layers that it has whole are not sent again the next time")
)

const (
	pushAnswer = 5 * time.Minute // a registry may look through a layer before it answers
	pushStall  = 5 * time.Minute // without a byte
)

// Push brings an image into a registry. Layers that are there, also in another repository that it was made of, are not sent.
// It returns the image's reference by its digest.
func (cfg Config) Push(ctx context.Context, p Push) (reference.Reference, error) {
	if p.To.Scheme != reference.SchemeDocker || p.To.Tag == "" {
		return reference.Reference{}, fmt.Errorf("push to %s: give a tag in a registry", p.To)
	}
	if err := p.write(ctx, newClient(cfg, pushAnswer)); err != nil {
		return reference.Reference{}, fmt.Errorf("push to %s: %w", strings.TrimPrefix(p.To.String(), "docker://"), err)
	}
	to := p.To.WithDigest(p.Digest)
	to.Tag = ""
	return to, nil
}

func (p Push) write(ctx context.Context, c *Client) error {
	repo, err := c.repository(p.To.Host + "/" + p.To.Repository)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	image, err := p.toV1(ctx, c)
	if err != nil {
		return err
	}
	auth := remote.WithAuth(p.Auth.authenticator())
	if p.Auth == (Auth{}) {
		auth = remote.WithAuthFromKeychain(authn.DefaultKeychain)
	}
	watch := time.AfterFunc(pushStall, func() { cancel(fmt.Errorf("the registry took no byte for %v", pushStall)) })
	defer watch.Stop()
	updates := make(chan v1.Update)
	var telling sync.WaitGroup
	telling.Go(fault.Func("rootfs", func() { p.tell(updates, watch) }))
	err = remote.Push(repo.Tag(p.To.Tag), image, auth, remote.WithContext(ctx), remote.WithTransport(c.trusted), remote.WithProgress(updates))
	telling.Wait()
	if err == nil {
		return nil
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	return pushError(err)
}

// tell reports until there is nothing more to come.
func (p Push) tell(updates <-chan v1.Update, watch *time.Timer) {
	total := int64(len(p.Config))
	for _, l := range p.Layers {
		total += l.Bytes
	}
	for u := range updates {
		watch.Reset(pushStall)
		if p.Progress != nil && u.Error == nil {
			p.Progress(min(u.Complete, total), total)
		}
	}
}

// pushError leaves of an error what is for people.
func pushError(err error) error {
	if e, ok := errors.AsType[*openError](err); ok {
		return e.error
	}
	if _, ok := errors.AsType[*transport.Error](err); ok {
		said := registryError(err)
		if text, ok := strings.CutPrefix(said.Error(), ErrDenied.Error()); ok {
			return fmt.Errorf("%w%s", errPushDenied, text)
		}
		return said
	}
	said := registryError(err)
	if isBroken(said) {
		return fmt.Errorf("%w (%v)", errPushBroken, said)
	}
	return said
}

// openError is the reason why a layer cannot be read.
type openError struct{ error }

// Unwrap gives the reason.
func (e *openError) Unwrap() error { return e.error }

// toV1 is the image as the client library has it.
func (p Push) toV1(ctx context.Context, c *Client) (v1.Image, error) {
	image, err := v1partial.CompressedToImage(pushedImage{p, ctx})
	if err != nil {
		return nil, err
	}
	m := mountableImage{Image: image}
	for _, l := range p.Layers {
		layer, err := v1partial.CompressedToLayer(pushedLayer{l, p, ctx})
		if err != nil {
			return nil, err
		}
		m.layers = append(m.layers, p.mountable(layer, l, c))
	}
	return m, nil
}

// mountable is a layer that the registry may have in another repository, and can mount from there.
func (p Push) mountable(layer v1.Layer, l Layer, c *Client) v1.Layer {
	for _, from := range l.From {
		if host, _, _ := strings.Cut(from, "/"); host != p.To.Host {
			continue
		}
		if repo, err := c.repository(from); err == nil {
			return &remote.MountableLayer{Layer: layer, Reference: repo.Digest(l.Digest)}
		}
	}
	return layer
}

// mountableImage has layers that know where else they are.
type mountableImage struct {
	v1.Image
	layers []v1.Layer
}

// Layers are the layers, the lowest first.
func (m mountableImage) Layers() ([]v1.Layer, error) { return m.layers, nil }

// pushedImage has an image's documents.
type pushedImage struct {
	Push
	ctx context.Context
}

// MediaType is OCI's.
func (p pushedImage) MediaType() (types.MediaType, error) { return types.OCIManifestSchema1, nil }

// RawConfigFile is the config.
func (p pushedImage) RawConfigFile() ([]byte, error) { return p.Config, nil }

// RawManifest is the manifest.
func (p pushedImage) RawManifest() ([]byte, error) { return p.Manifest, nil }

// LayerByDigest finds a layer.
func (p pushedImage) LayerByDigest(h v1.Hash) (v1partial.CompressedLayer, error) {
	for _, l := range p.Layers {
		if l.Digest == h.String() {
			return pushedLayer{l, p.Push, p.ctx}, nil
		}
	}
	return nil, fmt.Errorf("the image has no layer %s", h)
}

// pushedLayer is one of its layers.
type pushedLayer struct {
	Layer
	push Push
	ctx  context.Context
}

// Digest is of the bytes that are moved.
func (l pushedLayer) Digest() (v1.Hash, error) { return v1.NewHash(l.Layer.Digest) }

// DiffID is of the tar.
func (l pushedLayer) DiffID() (v1.Hash, error) { return v1.NewHash(l.Layer.DiffID) }

// Size is of the bytes that are moved.
func (l pushedLayer) Size() (int64, error) { return l.Bytes, nil }

// MediaType is the layer's.
func (l pushedLayer) MediaType() (types.MediaType, error) {
	return types.MediaType(l.Layer.MediaType), nil
}

// Compressed opens the layer.
func (l pushedLayer) Compressed() (io.ReadCloser, error) {
	r, err := l.push.Open(l.ctx, l.Layer.Digest)
	if err != nil {
		return nil, &openError{fmt.Errorf("read layer %s: %w", l.Layer.Digest, err)}
	}
	return openedLayer{r}, nil
}

// openedLayer tells errors of reading from the registry's.
type openedLayer struct{ io.ReadCloser }

// Read reads on.
func (o openedLayer) Read(b []byte) (int, error) {
	n, err := o.ReadCloser.Read(b)
	if err != nil && err != io.EOF {
		err = &openError{fmt.Errorf("read a layer: %w", err)}
	}
	return n, err
}

// isBroken reports whether a connection broke.
func isBroken(err error) bool {
	return slices.ContainsFunc([]error{io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, syscall.EPIPE, syscall.ECONNRESET}, func(end error) bool { return errors.Is(err, end) })
}
