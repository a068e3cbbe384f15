package transfer

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"

	"cupola/cmd/cupola/capi"
	"cupola/runtime/fault"
	"cupola/server/api"
	"cupola/server/control"
	"cupola/store"
	"cupola/store/blob"
	"cupola/store/cf"
)

// offlineURL is where an offline API seems to be: nothing has this name.
const offlineURL = "http://backup.invalid"

// offline is the API of a directory that has a database and blobs as a data directory does, and no daemon. It is reached
// in this process alone.
type offline struct {
	client *capi.Client
	store  *store.Store
	server *http.Server
}

// openOffline opens the API of a directory. Close it.
func openOffline(ctx context.Context, dir string) (*offline, error) {
	log := slog.New(slog.DiscardHandler)
	s, err := store.Open(store.Config{Dir: filepath.Join(dir, "db"), Log: log})
	if err != nil {
		return nil, err
	}
	blobs, err := blob.Open(filepath.Join(dir, "blobs"))
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	admin := cf.Identity{ClientID: "restore", Scopes: []string{"cloud_controller.admin"}}
	handler := api.New(ctx, api.Config{Store: s, Blobs: blobs, Log: log, Platform: control.Platform{URL: offlineURL},
		Authenticate: func(context.Context, string) (cf.Identity, error) { return admin, nil }})
	l := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
	o := &offline{store: s, server: &http.Server{Handler: handler}}
	o.client = &capi.Client{API: offlineURL, Token: "any", HTTP: &http.Client{Transport: &http.Transport{DialContext: l.dial}}}
	fault.Go("offline", func() { _ = o.server.Serve(l) })
	return o, nil
}

// Close closes the API.
func (o *offline) Close() error { return errors.Join(o.server.Close(), o.store.Close()) }

// pipes is a listener whose connections are pipes in memory.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case p.conns <- there:
		return here, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept waits for the next dial.
func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close ends the listener. http.Server calls it once.
func (p *pipes) Close() error {
	close(p.closed)
	return nil
}

// Addr is a name for what has no address.
func (p *pipes) Addr() net.Addr { return pipeAddr{} }

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "pipe" }
