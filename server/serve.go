package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"cupola/runtime/fault"
	"cupola/server/router"
	"cupola/server/systemd"
	"cupola/store"
)

// drainTime bounds how long requests in flight are waited for at the end.
const drainTime = 10 * time.Second

// Ready tells of a daemon that serves.
type Ready struct {
	HTTP, HTTPS   string // URLs; "" where there is no listener
	SSH           string // host:port; "" where there is no listener
	BBS           string // host:port; "" where there is no listener
	Metrics       string // URL; "" where there is no listener
	Domain        string
	DataDir       string
	CA            string // file
	AdminPassword string
	Stack         string // the default, and why
	Running       int    // instances that were adopted
}

// Run runs a daemon until ctx ends. ready is called once it serves.
func Run(ctx context.Context, c Config, ready func(Ready)) error {
	if err := c.normalizeForRoot(); err != nil {
		return err
	}
	protectMemory(c.Log)
	// Clients that come while the parts are opened wait in the listeners.
	plain, secure, err := listen(ctx, &c)
	if err != nil {
		return err
	}
	door, err := bindSSH(ctx, &c)
	if err != nil {
		return errors.Join(err, closeAll(plain, secure))
	}
	diego, err := bindBBS(ctx, &c)
	if err != nil {
		return errors.Join(err, closeAll(plain, secure, door))
	}
	meters, err := bindMetrics(ctx, &c)
	if err != nil {
		return errors.Join(err, closeAll(plain, secure, door, diego))
	}
	// The parts outlive ctx by as long as requests are drained.
	live, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	h, err := open(live, c)
	if err != nil {
		return errors.Join(err, closeAll(plain, secure, door, diego, meters))
	}
	defer h.close()
	listeners, info, err := h.guard(plain, secure)
	if err != nil {
		return errors.Join(err, closeAll(plain, secure, door, diego, meters))
	}
	err = h.serve(ctx, live, stop, doors{listeners, door, diego, meters}, func() { h.announce(info, ready) })
	if c.Stop == StopApps {
		err = errors.Join(err, h.teardown())
	}
	return err
}

// doors are the listeners; all but http are nil where there is none.
type doors struct {
	http    []net.Listener
	ssh     net.Listener
	bbs     net.Listener
	metrics net.Listener
}

// serve runs the parts. When ctx ends it drains, then stops them by stop; live
// is what stop ends.
func (h *house) serve(ctx, live context.Context, stop func(), doors doors, ready func()) error {
	group, live := errgroup.WithContext(live)
	// A part that fails ends them all, also those that listen until ctx ends.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(live, cancel)()
	// What ran before is led to at once: requests wait in the listeners.
	if err := h.setRoutes(live); err != nil {
		return fmt.Errorf("set the routes: %w", err)
	}
	// And what ran before is adopted with the reach that it has by now.
	if err := h.setReach(live); err != nil {
		h.Log.ErrorContext(live, "reach of containers not updated", "err", err)
	}
	if err := h.prepareBBS(doors.bbs); err != nil {
		return err
	}
	srv := router.NewServer(h.front(), h.Log, router.Timeouts{})
	srv.RegisterOnShutdown(h.endPolls) // or the drain would wait for them
	var coming arrivals
	coming.watch(srv)
	fault.Hooks("server", srv)
	var open sync.WaitGroup
	for _, l := range doors.http {
		open.Add(1)
		group.Go(fault.ErrFunc("server", func() error {
			defer open.Done()
			err := srv.Serve(fault.Listener("server", l))
			if errors.Is(err, http.ErrServerClosed) || errors.Is(err, net.ErrClosed) && ctx.Err() != nil {
				return nil
			}
			return err
		}))
	}
	h.startLoops(ctx, live, group, doors)
	listening := make(chan struct{})
	told := sync.OnceFunc(func() { close(listening) })
	group.Go(fault.Loop(live, "control", func(live context.Context) error {
		return h.serveControl(live, told)
	}))
	group.Go(fault.ErrFunc("server", func() error {
		select {
		case <-ctx.Done():
		case <-live.Done():
		}
		h.tell(systemd.Stopping)
		h.closeDoors(doors.http, &open, &coming)
		h.drain(srv)
		stop()
		return nil
	}))
	<-h.cell.Adopted()
	select {
	case <-listening:
		ready()
	case <-live.Done():
	}
	err := group.Wait()
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// startLoops starts what runs beside the HTTP listeners until live ends. What
// takes connections takes none after ctx.
func (h *house) startLoops(ctx, live context.Context, group *errgroup.Group, doors doors) {
	group.Go(fault.ErrFunc("cell", func() error { return h.cell.Run(live) }))
	group.Go(fault.Loop(live, "reconcile", func(ctx context.Context) error {
		<-h.cell.Adopted()
		return h.loop.Run(ctx)
	}))
	group.Go(fault.Loop(live, "reach", h.keepReach))
	if h.names != nil {
		group.Go(fault.Loop(live, "dns", h.names.Run))
	}
	group.Go(fault.Loop(live, "broker", h.brokers.Run))
	if h.dataBroker != nil {
		group.Go(fault.Loop(live, "dataservices", h.serveDataServices))
		group.Go(fault.Loop(live, "dataservices", h.publishDataPlans))
		group.Go(fault.Loop(live, "databroker", h.dataBroker.Run))
	}
	group.Go(fault.Loop(live, "api", h.api.Run))
	group.Go(fault.Loop(live, "routes", h.route))
	group.Go(fault.Loop(live, "deploy", func(ctx context.Context) error {
		<-h.cell.Adopted() // rows of what has ended meanwhile tell nothing
		return h.deploys.Run(ctx)
	}))
	group.Go(fault.Loop(live, "director", func(ctx context.Context) error {
		<-h.cell.Adopted()
		return h.director.Run(ctx)
	}))
	group.Go(fault.Loop(live, "drain", h.drainLogs))
	group.Go(fault.Loop(live, "measure", h.measure))
	group.Go(fault.Loop(live, "logs", h.forgetLogs))
	group.Go(fault.Loop(live, "tidy", h.tidy))
	group.Go(fault.Loop(live, "seed", h.seedLater))
	group.Go(fault.Loop(live, "database", h.keepDatabase))
	group.Go(fault.Loop(live, "preload", h.preload))
	group.Go(fault.Loop(live, "ports", func(live context.Context) error { return h.servePorts(ctx, live) }))
	group.Go(fault.Loop(live, "sshproxy", func(live context.Context) error { return h.serveSSH(ctx, live, doors.ssh) }))
	group.Go(fault.Loop(live, "bbs", h.runBBS))
	group.Go(fault.Loop(live, "bbs", func(live context.Context) error { return h.serveBBS(live, doors.bbs) }))
	group.Go(fault.Loop(live, "metrics", func(live context.Context) error { return h.serveMetrics(live, doors.metrics) }))
	group.Go(fault.Loop(live, "systemd", func(ctx context.Context) error { return h.Manager.KeepAlive(ctx, h.alive) }))
}

// alive tells whether the daemon still does its work: whether it can read and
// write its rows.
func (h *house) alive(ctx context.Context) error {
	nothing := func(*store.Tx) error { return nil }
	return errors.Join(h.store.Read(ctx, nothing), h.store.Write(ctx, nothing))
}

// closeDoors takes no new connections, and waits for those that have come: until
// TLS has been agreed on with them, and they have said what they want.
func (h *house) closeDoors(listeners []net.Listener, open *sync.WaitGroup, coming *arrivals) {
	if err := closeAll(listeners...); err != nil {
		h.Log.Warn("listeners not closed", "err", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), arrivalTime)
	defer cancel()
	shut := make(chan struct{})
	fault.Go("server", func() {
		open.Wait()
		close(shut)
	})
	select {
	case <-shut:
	case <-ctx.Done():
	}
	coming.wait(ctx)
}

// drain lets requests in flight finish and takes no new ones.
func (h *house) drain(srv *http.Server) {
	ctx, cancel := context.WithTimeout(context.Background(), drainTime)
	defer cancel()
	if err := srv.Shutdown(ctx); err != nil {
		h.Log.Warn("requests cut off", "err", err)
		srv.Close()
	}
	if h.ports != nil {
		select {
		case <-h.ports.Left():
		case <-ctx.Done():
		}
	}
	if err := h.router.Drain(ctx); err != nil {
		h.Log.Warn("connections cut off", "err", err)
	}
}

// listen binds the listeners; secure is nil where there is to be none. Where a
// port was left open, the configuration is told which it became.
func listen(ctx context.Context, c *Config) (plain, secure net.Listener, err error) {
	if plain, err = bind(ctx, c, "http", c.HTTP); err != nil {
		return nil, nil, err
	}
	c.HTTP = plain.Addr().String()
	if c.HTTPS == "off" {
		return plain, nil, nil
	}
	if secure, err = bind(ctx, c, "https", c.HTTPS); err != nil {
		return nil, nil, errors.Join(err, plain.Close())
	}
	c.HTTPS = secure.Addr().String()
	return plain, secure, nil
}

// bind gives the listener that was handed over under a flag's name, else one of
// its own.
func bind(ctx context.Context, c *Config, flag, addr string) (net.Listener, error) {
	if l := c.Listeners[flag]; l != nil {
		return l, nil
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("%w: give another address with --%s, like --%s 127.0.0.1:9080", err, flag, flag)
	}
	return l, nil
}

func closeAll(listeners ...net.Listener) (err error) {
	for _, l := range listeners {
		if l != nil {
			err = errors.Join(err, l.Close())
		}
	}
	return err
}

// guard has the listeners refuse requests that can be read in two ways, and
// secure speak TLS.
func (h *house) guard(plain, secure net.Listener) (listeners []net.Listener, info Ready, err error) {
	listeners, info.HTTP = append(listeners, router.Guard(plain, nil, h.gate)), "http://"+plain.Addr().String()
	if secure == nil {
		return listeners, info, nil
	}
	config, err := h.httpsTLS()
	if err != nil {
		return nil, info, err
	}
	info.HTTPS, info.CA = "https://"+secure.Addr().String(), h.path("ca.pem")
	return append(listeners, router.Guard(secure, config, h.gate)), info, nil
}

func (h *house) announce(info Ready, ready func(Ready)) {
	info.Domain, info.DataDir, info.Stack, info.Running = h.Domain, h.DataDir, h.stackNote(), len(h.cell.Containers())
	if h.ssh != nil {
		info.SSH = h.SSH
	}
	if h.BBS != "off" {
		info.BBS = h.BBS
	}
	if h.Metrics != "" && h.Metrics != "off" {
		info.Metrics = "http://" + h.Metrics + "/metrics"
	}
	info.AdminPassword, _ = AdminPassword(h.DataDir)
	h.tell(systemd.Ready)
	ready(info)
}

// tell says a state to the service manager.
func (h *house) tell(state string) {
	if err := h.Manager.Notify(state); err != nil {
		h.Log.Warn("service manager was not told", "state", state, "err", err)
	}
}

// stackNote says which stack is the default, and why.
func (h *house) stackNote() string {
	name, why := h.roots.Default(h.DefaultStack)
	return fmt.Sprintf("%s (%s)", name, why)
}
