package podcell

import (
	"context"
	"fmt"
	"log/slog"
	"net"

	"cupola/runtime/authority"
	"cupola/runtime/lrp"
	"cupola/server/kube"
	"cupola/server/kube/registry"
)

// Pulls are the images that the nodes of clusters pull from this machine.
type Pulls struct {
	Stacks func() []string // the names of root filesystems that Pack makes images of
	Source registry.Source // of what Pack has made
	// Pack makes an image of a container's root and layers. It tells of what takes long.
	Pack func(ctx context.Context, of lrp.RunInfo, tell func(what string)) (digest string, err error)

	registry registry.Registry
	listener net.Listener
}

// Listen takes connections of nodes at an address of this machine. dir keeps the key of the cells' passwords.
func (p *Pulls) Listen(ctx context.Context, address, dir string) (err error) {
	p.registry = registry.Registry{Source: p.Source, Address: address}
	if err := p.registry.Open(dir); err != nil {
		return err
	}
	p.listener, err = (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	return err
}

// Serve answers the nodes until ctx ends.
func (p *Pulls) Serve(ctx context.Context, ca func() (*authority.Authority, error), log *slog.Logger) error {
	return p.registry.Serve(ctx, p.listener, ca, log)
}

// Close ends what Listen began; Serve does so, too.
func (p *Pulls) Close() { _ = p.listener.Close() }

// image makes an image of a container's root that a cell's nodes can pull.
func (p *Pulls) image(ctx context.Context, cell string, of lrp.RunInfo, tell func(what string)) (kube.PackedImage, error) {
	digest, err := p.Pack(ctx, of, tell)
	if err != nil {
		return kube.PackedImage{}, fmt.Errorf("make its image: %w", err)
	}
	return kube.PackedImage{Reference: p.registry.Reference(digest), Username: cell, Password: p.registry.Password(cell)}, nil
}
