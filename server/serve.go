package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"cupola/runtime/fault"
	"cupola/server/admin"
	"cupola/server/admin/support"
	"cupola/server/bulkhead"
	"cupola/server/config"
	"cupola/server/front"
	"cupola/server/preload"
	"cupola/server/seed"
	"cupola/server/systemd"
	"cupola/store"
)

// Ready describes a daemon that serves.
type Ready struct {
	HTTP, HTTPS   string // URLs; "" where there is no listener
	SSH           string // host:port; "" where there is no listener
	BBS           string // host:port; "" where there is no listener
	Director      string // URL; "" where there is no listener
	Metrics       string // URL; "" where there is no listener
	Domain        string
	DataDir       string
	CA            string // file
	AdminPassword string
	Stack         string // the default, and why
	Running       int    // instances that were adopted
}

// Run runs a daemon until ctx ends. ready is called once it serves.
func Run(ctx context.Context, c config.Config, ready func(Ready)) error {
	if err := errors.Join(c.Validate(), admin.NeedRoot()); err != nil {
		return err
	}
	said := &support.Log{}
	c.Log = slog.New(said.Handler(c.Log.Handler()))
	bulkhead.ProtectMemory(c.Log)
	// Clients that come while the parts are opened wait in the listeners.
	bound, err := (&front.Binder{HTTP: &c.HTTP, HTTPS: &c.HTTPS, SSH: &c.SSH, BBS: &c.BBS, Director: &c.Director, Metrics: &c.Metrics, Segments: c.SegmentListeners(), Held: c.Listeners, Log: c.Log}).Listen(ctx)
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
	d.started, d.operations = d.Current.Get(), d.admin(said)
	d.faces.Operations, d.faces.BackupsBehind = d.operations.Remote(), func() map[string]float64 { return d.operations.Offsite.Keeper().Behind() }
	if err := d.faces.Listen(live, bound); err != nil {
		return errors.Join(err, bound.Close())
	}
	err = d.serve(ctx, live, stop, func() { d.announce(ready) })
	if c.Stop == config.StopApps {
		err = errors.Join(err, d.executor.Teardown())
	}
	return err
}

// serve runs the parts. When ctx ends it drains, then stops them by stop; live
// is what stop ends.
func (d *daemon) serve(ctx, live context.Context, stop, ready func()) error {
	group, live := fault.NewGroup(live)
	// A part that fails stops all, even those that listen until ctx ends.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(live, cancel)()
	// Apps that still run get requests at once: these wait in the listeners.
	if err := d.loops.Ingress.Set(live); err != nil {
		return fmt.Errorf("set the routes: %w", err)
	}
	if err := d.loops.Sleep.Set(live); err != nil {
		return fmt.Errorf("find the apps that sleep: %w", err)
	}
	// Running containers are adopted with their current reach.
	if err := d.loops.Reach.Set(live); err != nil {
		d.Log.ErrorContext(live, "reach of containers not updated", "err", err)
	}
	listening := make(chan struct{})
	accepting, refuse := context.WithCancel(context.WithoutCancel(ctx))
	defer refuse()
	d.start(accepting, live, group, sync.OnceFunc(func() { close(listening) }))
	group.Go(fault.ErrFunc("server", func() error {
		select {
		case <-ctx.Done():
			d.awaitBalancers(live)
		case <-live.Done():
		}
		refuse()
		d.faces.Drain()
		stop()
		return nil
	}))
	<-d.executor.Cell.Adopted()
	select {
	case <-listening:
		d.faces.Health.Ready()
		ready()
	case <-live.Done():
	}
	err := group.Wait()
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// start starts the parts, which run until live ends. Listeners accept no connections after
// ctx. listening is called when operators' commands can reach the daemon.
func (d *daemon) start(ctx, live context.Context, group *fault.Group, listening func()) {
	d.faces.Start(ctx, live, group)
	d.executor.Start(live, group)
	d.loops.Start(live, group)
	d.operations.Start(live, group, listening)
	group.Go(fault.Loop(live, "alerts", d.alerts.Run))
	group.Go(fault.Loop(live, "seed", d.seeds.Run))
	group.Go(fault.Loop(live, "reload", d.reloads))
	group.Go(fault.Loop(live, "memory", func(ctx context.Context) error {
		return bulkhead.ReturnMemory(ctx, d.executor.Store.ReleaseMemory, d.Log)
	}))
	group.Go(fault.Loop(live, "preload", preload.Preloader{Cells: d.Config.Config, Stacks: d.executor.Stacks}.Run))
	group.Go(fault.Loop(live, "systemd", func(ctx context.Context) error { return d.Manager.KeepAlive(ctx, d.alive) }))
}

// awaitBalancers keeps serving for a while as unhealthy, so that load balancers stop sending requests.
func (d *daemon) awaitBalancers(live context.Context) {
	d.faces.Health.Drain()
	d.tell(systemd.Stopping)
	select {
	case <-time.After(d.Current.Get().DrainWait):
	case <-live.Done():
	}
}

// alive reports whether the daemon can still begin to read and write rows. A full disk does not count: another daemon would have no more room.
func (d *daemon) alive(ctx context.Context) error {
	nothing := func(*store.Tx) error { return nil }
	return errors.Join(d.executor.Store.Read(ctx, nothing), d.executor.Store.Write(ctx, nothing))
}

// writable reports whether rows can be read and written.
func (d *daemon) writable(ctx context.Context) error {
	touch := func(tx *store.Tx) error { return tx.Touch() }
	return errors.Join(d.executor.Store.Read(ctx, func(*store.Tx) error { return nil }), d.executor.Store.Write(store.As(ctx, "health"), touch))
}

func (d *daemon) announce(ready func(Ready)) {
	stack, why := d.executor.Roots.Stacks.Default(d.DefaultStack)
	r := Ready{HTTP: "http://" + d.HTTP, Domain: d.Domain, DataDir: d.DataDir, Stack: fmt.Sprintf("%s (%s)", stack, why), Running: len(d.executor.Cell.Containers())}
	if d.HTTPS != "off" {
		r.HTTPS, r.CA = "https://"+d.HTTPS, d.executor.Dir.Path("ca.pem")
	}
	if d.SSH != "off" {
		r.SSH = d.SSH
	}
	if d.BBS != "off" {
		r.BBS = d.BBS
	}
	if d.Director != "" && d.Director != "off" {
		r.Director, r.CA = "https://"+d.Director, d.executor.Dir.Path("ca.pem")
	}
	if d.Metrics != "" && d.Metrics != "off" {
		r.Metrics = "http://" + d.Metrics + "/metrics"
	}
	r.AdminPassword, _ = seed.AdminPassword(d.DataDir)
	d.tell(systemd.Ready)
	ready(r)
}

// tell reports a state to the service manager.
func (d *daemon) tell(state string) {
	if err := d.Manager.Notify(state); err != nil {
		d.Log.Warn("service manager was not notified", "state", state, "err", err)
	}
}
