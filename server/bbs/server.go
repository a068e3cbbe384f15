package bbs

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"cupola/runtime/fault"
	"cupola/runtime/guid"
	"cupola/runtime/lrp"
	"cupola/server/bbs/bbsrows"
	"cupola/server/bulkhead"
	"cupola/server/desire"
	"cupola/store"
)

// Config is what a Server is made of. All but Log is required.
type Config struct {
	Store *store.Store
	Rows  *bbsrows.Cache
	// Apps derives what Cloud Foundry's apps desire.
	Apps  func(*store.Tx) ([]desire.App, error)
	Cells func() []lrp.Cell
	// Containers lists what a cell has.
	Containers func(cellID string) []lrp.ContainerStatus
	// Tasks derives what Cloud Foundry's tasks and stagings run, by GUID.
	Tasks func(*store.Tx) (map[string]lrp.RunInfo, error)
	// Address is the address of the API, host:port.
	Address func() string
	Wake    func() // wakes the scheduler
	Log     *slog.Logger
}

// Server serves the BBS API.
type Server struct {
	Config
	hub      *hub
	unfollow func()
	apps     *apps
	calls    *callbacks
	owner    string // of the locks that the daemon itself holds
}

// New makes a Server. It follows the store's changes from now on, so that no
// stream which is served before Run runs lacks any.
func New(c Config) *Server {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{Config: c, owner: guid.New(), hub: newHub(c.Rows, c.Cells)}
	s.unfollow = c.Store.Follow(s.hub.changes)
	s.apps = newApps(c, s.hub)
	s.calls = newCallbacks(c)
	return s
}

// Run sends changes to subscribers and results to owners of tasks, until
// ctx ends.
func (s *Server) Run(ctx context.Context) error {
	defer s.unfollow()
	group, ctx := fault.NewGroup(ctx)
	group.Go(fault.Loop(ctx, "bbs", s.apps.run))
	group.Go(fault.Loop(ctx, "bbs", s.calls.run))
	return group.Wait()
}

// Times that a client has.
const (
	headerTime = 10 * time.Second
	bodyTime   = 30 * time.Second
	writeTime  = 30 * time.Second // of an answer, or of one event
	idleTime   = 2 * time.Minute
)

// maxIdle bounds connections without a request under way, TLS handshakes among
// them: what comes after those is from who has a certificate.
const maxIdle = 64

// Serve answers the clients of l, which must give one of config's CA as
// its own certificate, until ctx ends.
func (s *Server) Serve(ctx context.Context, l net.Listener, config *tls.Config) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	srv := &http.Server{Handler: s.handler(), ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, MaxHeaderBytes: 64 << 10,
		BaseContext: func(net.Listener) context.Context { return ctx },
		ErrorLog:    slog.NewLogLogger(s.Log.Handler(), slog.LevelDebug)}
	bulkhead.Watch(srv, maxIdle)
	stop := context.AfterFunc(ctx, func() { srv.Close() })
	defer stop()
	if err := srv.Serve(tls.NewListener(fault.Listener("bbs", l), config)); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
