package podcell

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"sync"

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

	// Open opens an archive for a staging, and Keep keeps what one has made.
	Open func(source string) (*os.File, error)
	Keep func(ctx context.Context, r io.Reader) (lrp.Blob, error)
	Has  func(digest string) bool // of what Keep kept
	CA   func() ([]byte, error)   // the certificates that pods trust, as PEM

	registry registry.Registry
	listener net.Listener
	apart    bool             // it listens elsewhere than at Address
	at       []netip.AddrPort // of Address

	mu    sync.Mutex
	cells map[string]*Cell // that pull
}

// Advertise takes the address at which nodes and pods reach it, and the key of the cells' passwords, which dir keeps.
func (p *Pulls) Advertise(ctx context.Context, address, dir string) (err error) {
	p.registry = registry.Registry{Source: p.Source, Address: address, Stagings: p.staging}
	if p.at, err = resolve(ctx, address); err != nil {
		return err
	}
	return p.registry.Open(dir)
}

// Listen takes connections at an address of this machine: the one that Advertise was given, or one that it leads to.
func (p *Pulls) Listen(ctx context.Context, address string) (err error) {
	p.apart = address != p.registry.Address
	p.listener, err = (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	return err
}

// resolve finds what the host of an address is.
func resolve(ctx context.Context, address string) (all []netip.AddrPort, err error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return nil, err
	}
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	for _, a := range found {
		all = append(all, netip.AddrPortFrom(a.Unmap(), uint16(n)))
	}
	return all, err
}

// reachedAt are the addresses at which policies see the registry, of which routers are those of this machine: behind a Service of
// the cluster, some network plugins see the pod that it leads to.
func (p *Pulls) reachedAt(routers []netip.Addr) []netip.AddrPort {
	all := slices.Clone(p.at)
	port, ok := p.listensAt()
	if !ok || !p.apart && slices.ContainsFunc(all, func(a netip.AddrPort) bool { return slices.Contains(routers, a.Addr()) }) {
		return all
	}
	for _, a := range routers {
		if at := netip.AddrPortFrom(a, port); !slices.Contains(all, at) {
			all = append(all, at)
		}
	}
	return all
}

// listensAt is the port of this machine.
func (p *Pulls) listensAt() (port uint16, ok bool) {
	if p.listener != nil {
		at, err := netip.ParseAddrPort(p.listener.Addr().String())
		return at.Port(), err == nil
	}
	if len(p.at) > 0 {
		return p.at[0].Port(), true
	}
	return 0, false
}

// add lets stagers of a cell find it.
func (p *Pulls) add(c *Cell) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cells == nil {
		p.cells = map[string]*Cell{}
	}
	p.cells[c.pods.Cell] = c
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
