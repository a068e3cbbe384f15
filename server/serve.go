package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"

	"golang.org/x/sync/errgroup"

	"cupola/runtime/fault"
	"cupola/server/admin"
	"cupola/server/bulkhead"
	"cupola/server/front"
	"cupola/server/preload"
	"cupola/server/reconcile"
	"cupola/server/router"
	"cupola/server/seed"
	"cupola/server/systemd"
	"cupola/store"
)

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
	if err := c.validateForRoot(); err != nil {
		return err
	}
	bulkhead.ProtectMemory(c.Log)
	// Clients that come while the parts are opened wait in the listeners.
	bound, err := (&front.Binder{HTTP: &c.HTTP, HTTPS: &c.HTTPS, SSH: &c.SSH, BBS: &c.BBS, Metrics: &c.Metrics, Held: c.Listeners, Log: c.Log}).Listen(ctx)
	if err != nil {
		return err
	}
	// The parts outlive ctx by as long as requests are drained.
	live, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	d, err := open(live, c)
	if err != nil {
		return errors.Join(err, bound.Close())
	}
	defer d.close()
	listening, info, err := d.guard(bound.Plain, bound.Secure)
	if err != nil {
		return errors.Join(err, bound.Close())
	}
	err = d.serve(ctx, live, stop, listeners{listening, bound.SSH, bound.BBS, bound.Metrics}, func() { d.announce(info, ready) })
	if c.Stop == StopApps {
		err = errors.Join(err, d.teardown())
	}
	return err
}

// listeners are where the daemon listens; all but http are nil where there is none.
type listeners struct {
	http    []net.Listener
	ssh     net.Listener
	bbs     net.Listener
	metrics net.Listener
}

// serve runs the parts. When ctx ends it drains, then stops them by stop; live
// is what stop ends.
func (d *daemon) serve(ctx, live context.Context, stop func(), listeners listeners, ready func()) error {
	group, live := errgroup.WithContext(live)
	// A part that fails ends them all, also those that listen until ctx ends.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(live, cancel)()
	// What ran before is led to at once: requests wait in the listeners.
	if err := d.ingress.Set(live); err != nil {
		return fmt.Errorf("set the routes: %w", err)
	}
	// And what ran before is adopted with the reach that it has by now.
	if err := d.reach.Set(live); err != nil {
		d.Log.ErrorContext(live, "reach of containers not updated", "err", err)
	}
	if err := d.prepareBBS(listeners.bbs); err != nil {
		return err
	}
	srv := front.NewServer(d.front().Handler(), d.endPolls, d.Log)
	srv.Start(ctx, group, listeners.http)
	d.startLoops(ctx, live, group, listeners)
	listening := make(chan struct{})
	told := sync.OnceFunc(func() { close(listening) })
	group.Go(fault.Loop(live, "control", func(live context.Context) error {
		return admin.Serve(live, d.dir, d.admin(), d.Log, told)
	}))
	group.Go(fault.ErrFunc("server", func() error {
		select {
		case <-ctx.Done():
		case <-live.Done():
		}
		d.tell(systemd.Stopping)
		srv.Close(listeners.http)
		d.drain(srv)
		stop()
		return nil
	}))
	<-d.cell.Adopted()
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
func (d *daemon) startLoops(ctx, live context.Context, group *errgroup.Group, listeners listeners) {
	group.Go(fault.ErrFunc("cell", func() error { return d.cell.Run(live) }))
	group.Go(fault.Loop(live, "reconcile", func(ctx context.Context) error {
		<-d.cell.Adopted()
		return d.loop.Run(ctx)
	}))
	group.Go(fault.Loop(live, "reach", d.reach.Run))
	if d.names != nil {
		group.Go(fault.Loop(live, "dns", d.names.Run))
	}
	group.Go(fault.Loop(live, "broker", d.brokers.Run))
	d.dataBroker.Start(live, group)
	group.Go(fault.Loop(live, "api", d.api.Run))
	group.Go(fault.Loop(live, "routes", d.ingress.Run))
	group.Go(fault.Loop(live, "deploy", func(ctx context.Context) error {
		<-d.cell.Adopted() // rows of what has ended meanwhile tell nothing
		return d.deploys.Run(ctx)
	}))
	group.Go(fault.Loop(live, "director", func(ctx context.Context) error {
		<-d.cell.Adopted()
		return d.director.Run(ctx)
	}))
	group.Go(fault.Loop(live, "drain", d.logs.Drain))
	group.Go(fault.Loop(live, "measure", func(ctx context.Context) error { return d.logs.Measure(ctx, d.cell.Measure) }))
	group.Go(fault.Loop(live, "logs", d.logs.Forget))
	group.Go(fault.Loop(live, "tidy", d.collector().Run))
	group.Go(fault.Loop(live, "seed", d.seeds.Run))
	group.Go(fault.Loop(live, "database", d.database().Run))
	group.Go(fault.Loop(live, "preload", preload.Preloader{Cells: d.Config.Config, Stacks: d.stacks}.Run))
	if d.ports != nil { // they listen until ctx ends; connections go on until live ends
		group.Go(fault.Loop(live, "ports", func(live context.Context) error { return d.ports.Run(ctx, live) }))
	}
	group.Go(fault.Loop(live, "sshproxy", func(live context.Context) error { return d.serveSSH(ctx, live, listeners.ssh) }))
	group.Go(fault.Loop(live, "bbs", d.bbs.Run)) // tasks have callbacks also when the listener was taken away
	group.Go(fault.Loop(live, "bbs", func(live context.Context) error { return d.serveBBS(live, listeners.bbs) }))
	group.Go(fault.Loop(live, "metrics", func(live context.Context) error { return d.serveMetrics(live, listeners.metrics) }))
	group.Go(fault.Loop(live, "systemd", func(ctx context.Context) error { return d.Manager.KeepAlive(ctx, d.alive) }))
}

// alive tells whether the daemon still does its work: whether it can read and
// write its rows.
func (d *daemon) alive(ctx context.Context) error {
	nothing := func(*store.Tx) error { return nil }
	return errors.Join(d.store.Read(ctx, nothing), d.store.Write(ctx, nothing))
}

// drain lets requests in flight finish and takes no new ones.
func (d *daemon) drain(srv *front.Server) {
	ctx, cancel := context.WithTimeout(context.Background(), reconcile.DrainTime)
	defer cancel()
	srv.Drain(ctx)
	if d.ports != nil {
		select {
		case <-d.ports.Left():
		case <-ctx.Done():
		}
	}
	if err := d.router.Drain(ctx); err != nil {
		d.Log.Warn("connections cut off", "err", err)
	}
}

// front is what clients of the listeners meet.
func (d *daemon) front() *front.Front {
	return &front.Front{Domain: d.Domain, API: d.api, UAA: d.uaa, Logs: d.logs.Cache, Readers: front.Readers{Store: d.store, UAA: d.uaa},
		Router: d.router, Metrics: d.metrics, Gate: d.gate, Slots: d.apiSlots}
}

func (d *daemon) certificates() *front.Certificates {
	return &front.Certificates{Authority: d.dir.Authority, APIHost: d.APIHost(), Domain: d.Domain, Log: d.Log}
}

// guard has the listeners refuse requests that can be read in two ways, and
// secure speak TLS.
func (d *daemon) guard(plain, secure net.Listener) (listeners []net.Listener, info Ready, err error) {
	listeners, info.HTTP = append(listeners, router.Guard(plain, nil, d.gate)), "http://"+plain.Addr().String()
	if secure == nil {
		return listeners, info, nil
	}
	config, err := d.certificates().TLS(d.router.Guards, d.identities.Certificate)
	if err != nil {
		return nil, info, err
	}
	info.HTTPS, info.CA = "https://"+secure.Addr().String(), d.dir.Path("ca.pem")
	return append(listeners, router.Guard(secure, config, d.gate)), info, nil
}

func (d *daemon) announce(info Ready, ready func(Ready)) {
	info.Domain, info.DataDir, info.Stack, info.Running = d.Domain, d.DataDir, d.stackNote(), len(d.cell.Containers())
	if d.ssh != nil {
		info.SSH = d.SSH
	}
	if d.BBS != "off" {
		info.BBS = d.BBS
	}
	if d.Metrics != "" && d.Metrics != "off" {
		info.Metrics = "http://" + d.Metrics + "/metrics"
	}
	info.AdminPassword, _ = seed.AdminPassword(d.DataDir)
	d.tell(systemd.Ready)
	ready(info)
}

// tell says a state to the service manager.
func (d *daemon) tell(state string) {
	if err := d.Manager.Notify(state); err != nil {
		d.Log.Warn("service manager was not told", "state", state, "err", err)
	}
}

// stackNote says which stack is the default, and why.
func (d *daemon) stackNote() string {
	name, why := d.roots.Stacks.Default(d.DefaultStack)
	return fmt.Sprintf("%s (%s)", name, why)
}
