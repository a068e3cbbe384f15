package front

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"syscall"
)

// Binder binds the daemon's listeners. It gets the addresses of the flags, and
// replaces a port that was left open by the one that it bound.
type Binder struct {
	HTTP, HTTPS, SSH, BBS, Director, Metrics *string
	Segments                                 []SegmentRouter
	Held                                     map[string]net.Listener // handed over, by flag
	Log                                      *slog.Logger
}

// Listeners are where the daemon listens; all but Plain are nil where there is none.
type Listeners struct {
	Plain, Secure, SSH, BBS, Director, Metrics net.Listener
	Segments                                   []net.Listener // of Binder.Segments
}

// Listen binds all of them, or none.
func (b *Binder) Listen(ctx context.Context) (l Listeners, err error) {
	for _, step := range []func() error{
		func() (err error) { l.Plain, err = b.bind(ctx, "http", b.HTTP); return err },
		func() (err error) { l.Secure, err = b.optional(ctx, "https", b.HTTPS); return err },
		func() (err error) { l.SSH, err = b.ssh(ctx); return err },
		func() (err error) { l.BBS, err = b.optional(ctx, "bbs", b.BBS); return err },
		func() (err error) { l.Director, err = b.optional(ctx, "director", b.Director); return err },
		func() (err error) { l.Metrics, err = b.optional(ctx, "metrics", b.Metrics); return err },
		func() (err error) { l.Segments, err = b.segments(ctx); return err },
	} {
		if err := step(); err != nil {
			return Listeners{}, errors.Join(err, l.Close())
		}
	}
	return l, nil
}

// Close closes those that there are.
func (l Listeners) Close() (err error) {
	for _, one := range append([]net.Listener{l.Plain, l.Secure, l.SSH, l.BBS, l.Director, l.Metrics}, l.Segments...) {
		if one != nil {
			err = errors.Join(err, one.Close())
		}
	}
	return err
}

// optional binds a listener; nil if its flag is off.
func (b *Binder) optional(ctx context.Context, flag string, addr *string) (net.Listener, error) {
	if *addr == "" || *addr == "off" {
		return nil, nil
	}
	return b.bind(ctx, flag, addr)
}

// segments binds the routers of isolation segments.
func (b *Binder) segments(ctx context.Context) (all []net.Listener, err error) {
	for _, s := range b.Segments {
		l, err := b.take(ctx, s.flag(), s.Address)
		if err != nil {
			return all, err
		}
		all = append(all, l)
	}
	return all, nil
}

func (b *Binder) bind(ctx context.Context, flag string, addr *string) (net.Listener, error) {
	l, err := b.take(ctx, flag, *addr)
	if err != nil {
		return nil, err
	}
	*addr = l.Addr().String()
	return l, nil
}

// take returns the listener that was handed over under a flag's name, else one of
// its own.
func (b *Binder) take(ctx context.Context, flag, addr string) (net.Listener, error) {
	if l := b.Held[flag]; l != nil {
		return l, nil
	}
	example := "127.0.0.1:9080"
	if strings.HasPrefix(flag, segmentFlag) {
		example = "NAME=" + example
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("%w: give another address with --%s, like --%[2]s %[3]s", err, flag, example)
	}
	return l, nil
}

// defaultSSH is where `cf ssh` is listened for if the port is free.
const defaultSSH = "127.0.0.1:2222"

// ssh binds the listener of `cf ssh`; nil if its flag is off. Clients learn the port
// from the API: without the flag, any free port is used if the default is taken, as by
// another daemon.
func (b *Binder) ssh(ctx context.Context) (net.Listener, error) {
	if *b.SSH == "off" {
		return nil, nil
	}
	addr := *b.SSH
	if addr == "" {
		addr = defaultSSH
	}
	l, err := b.take(ctx, "ssh", addr)
	if err != nil && *b.SSH == "" && errors.Is(err, syscall.EADDRINUSE) {
		if l, err = b.take(ctx, "ssh", "127.0.0.1:0"); err == nil {
			b.Log.Info("default ssh port was taken", "address", l.Addr().String())
		}
	}
	if err != nil {
		return nil, err
	}
	*b.SSH = l.Addr().String()
	return l, nil
}
