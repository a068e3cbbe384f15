package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"cupola/server/router"
)

// drainTime bounds how long requests in flight are waited for at the end.
const drainTime = 10 * time.Second

// Ready tells of a daemon that serves.
type Ready struct {
	HTTP, HTTPS   string // URLs; "" where there is no listener
	Domain        string
	DataDir       string
	CA            string // file
	AdminPassword string
	Stack         string // the default, and why
	Running       int    // instances that were adopted
}

// Run runs a daemon until ctx ends. ready is called once it serves.
func Run(ctx context.Context, c Config, ready func(Ready)) error {
	if err := c.normalize(); err != nil {
		return err
	}
	// The parts outlive ctx by as long as requests are drained.
	live, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	h, err := open(live, c)
	if err != nil {
		return err
	}
	defer h.close()
	listeners, info, err := h.listen()
	if err != nil {
		return err
	}
	err = h.serve(ctx, live, stop, listeners, func() { h.announce(info, ready) })
	if c.Stop == StopApps {
		err = errors.Join(err, h.teardown())
	}
	return err
}

// serve runs the parts. When ctx ends it drains, then stops them by stop; live
// is what stop ends.
func (h *house) serve(ctx, live context.Context, stop func(), listeners []net.Listener, ready func()) error {
	group, live := errgroup.WithContext(live)
	srv := router.NewServer(h.front(), h.Log, router.Timeouts{})
	for _, l := range listeners {
		group.Go(func() error {
			if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
				return err
			}
			return nil
		})
	}
	group.Go(func() error { return h.cell.Run(live) })
	group.Go(func() error {
		<-h.cell.Adopted()
		return h.loop.Run(live)
	})
	group.Go(func() error { return h.route(live) })
	group.Go(func() error { return h.tidy(live) })
	group.Go(func() error { return h.serveControl(live) })
	group.Go(func() error {
		select {
		case <-ctx.Done():
		case <-live.Done():
		}
		h.drain(srv)
		stop()
		return nil
	})
	<-h.cell.Adopted()
	ready()
	err := group.Wait()
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// drain lets requests in flight finish and takes no new ones.
func (h *house) drain(srv *http.Server) {
	ctx, cancel := context.WithTimeout(context.Background(), drainTime)
	defer cancel()
	if err := srv.Shutdown(ctx); err != nil {
		h.Log.Warn("requests cut off", "err", err)
		srv.Close()
	}
	if err := h.router.Drain(ctx); err != nil {
		h.Log.Warn("connections cut off", "err", err)
	}
}

func (h *house) listen() (listeners []net.Listener, info Ready, err error) {
	l, err := h.bind("--http", h.HTTP)
	if err != nil {
		return nil, info, err
	}
	listeners, info.HTTP = append(listeners, l), "http://"+l.Addr().String()
	if h.HTTPS == "off" {
		return listeners, info, nil
	}
	cert, err := h.certificate()
	if err == nil {
		l, err = h.bind("--https", h.HTTPS)
	}
	if err != nil {
		listeners[0].Close()
		return nil, info, err
	}
	secure := tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: []string{"h2", "http/1.1"}, MinVersion: tls.VersionTLS12})
	info.HTTPS, info.CA = "https://"+l.Addr().String(), h.path("ca.pem")
	return append(listeners, secure), info, nil
}

func (h *house) bind(flag, addr string) (net.Listener, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("%w: give another address with %s, like %s 127.0.0.1:9080", err, flag, flag)
	}
	return l, nil
}

func (h *house) announce(info Ready, ready func(Ready)) {
	info.Domain, info.DataDir, info.Stack, info.Running = h.Domain, h.DataDir, h.stackNote(), len(h.cell.Containers())
	info.AdminPassword, _ = AdminPassword(h.DataDir)
	ready(info)
}

// stackNote says which stack is the default, and why.
func (h *house) stackNote() string {
	name, why := h.roots.Default(h.DefaultStack)
	return fmt.Sprintf("%s (%s)", name, why)
}
