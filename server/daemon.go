package server

import (
	"context"
	"errors"
	"fmt"
	"time"

	"cupola/runtime/fault"
	"cupola/runtime/lrp"
	"cupola/server/acme"
	"cupola/server/admin"
	"cupola/server/admin/disk"
	"cupola/server/admin/support"
	"cupola/server/alerts"
	"cupola/server/config"
	"cupola/server/datadir"
	"cupola/server/executor"
	"cupola/server/faces"
	"cupola/server/front"
	"cupola/server/loops"
	"cupola/server/seed"
)

// daemon is the parts of a running daemon.
type daemon struct {
	config.Config
	seeds    *seed.Seeds
	executor *executor.Executor
	loops    *loops.Loops
	faces    *faces.Faces
	alerts   *alerts.Loop
	started  *config.Config // as read at the start

	operations *admin.Daemon
}

// open opens the parts in the order in which they need each other. What ran before
// continues to run.
func open(ctx context.Context, c config.Config) (*daemon, error) {
	d := &daemon{Config: c}
	d.executor = &executor.Executor{Config: &d.Config, Events: func(e lrp.Event) { d.loops.Reconcile.Event(e) }, Freed: func() { d.loops.Reconcile.Freed() }}
	d.loops, d.faces = &loops.Loops{Executor: d.executor}, &faces.Faces{Executor: d.executor, Health: &front.Health{Works: d.writable}}
	fault.Watch(func(p *fault.Panic) {
		c.Log.Error("something panicked and was ended alone", "part", p.Part, "err", p, "stack", string(p.Stack))
	})
	x, f := d.executor, d.faces
	for _, step := range []struct {
		what string
		open func(context.Context) error
	}{
		{"data directory", d.openDir}, {"limits", f.OpenLimits}, {"API's address", func(context.Context) error { return x.Dir.WriteAPI(d.HTTP) }}, {"store", d.openStore},
		{"network's addresses", x.OpenAddresses}, {"root filesystems", x.OpenRoots}, {"volumes", x.OpenVolumes},
		{"metrics", f.OpenMetrics}, {"containers", x.OpenContainers}, {"network", x.OpenNetwork}, {"cell", x.OpenCell},
		{"seeds", d.openSeeds}, {"ssh proxy", f.OpenSSH}, {"control plane", d.openControl}, {"built-in service broker", d.loops.OpenDataServices}, {"alerts", d.openAlerts},
	} {
		if err := step.open(ctx); err != nil {
			d.close()
			d.undo(ctx)
			return nil, fmt.Errorf("open the %s: %w", step.what, err)
		}
	}
	return d, nil
}

// undo removes the mounts, addresses and rules that a failed open has made. The daemon is closed.
func (d *daemon) undo(ctx context.Context) {
	if d.executor.Store == nil || d.None {
		return // open failed earlier
	}
	if err := d.executor.Undo(ctx); err != nil {
		d.Log.WarnContext(ctx, "what a start that failed had made is left", "err", err, "remedy", "sudo cupola cleanup --data-dir "+d.DataDir)
	}
}

func (d *daemon) openDir(context.Context) (err error) {
	if d.executor.Dir, err = datadir.Open(d.DataDir, d.Log); err != nil {
		return err
	}
	return d.executor.Dir.CheckReachable()
}

func (d *daemon) openStore(ctx context.Context) (err error) {
	x := d.executor
	if x.Store, err = x.Dir.Store(ctx); err != nil {
		return err
	}
	if x.Blobs, err = x.Dir.Blobs(); err != nil {
		return err
	}
	d.seeds = &seed.Seeds{Store: x.Store, Blobs: x.Blobs, DataDir: d.DataDir, Domain: d.Domain, Password: d.AdminPassword, Log: d.Log}
	d.seeds.Begin(ctx)
	return nil
}

func (d *daemon) openSeeds(ctx context.Context) error {
	d.seeds.Stacks = d.executor.Stacks.Rows
	return d.seeds.Open(ctx)
}

// openControl opens the loops, which change what the router knows, and the API,
// which asks the loops.
func (d *daemon) openControl(ctx context.Context) error {
	if err := d.faces.OpenRouter(ctx); err != nil {
		return err
	}
	if err := d.loops.Open(ctx, d.faces.Router, d.faces.Metrics.TracedPull(d.executor.Images.Pull), d.faces.Metrics.Converged); err != nil {
		return err
	}
	return d.faces.OpenAPI(ctx, d.loops)
}

// openAlerts opens the loop that sends alerts.
func (d *daemon) openAlerts(context.Context) error {
	x := d.executor
	d.alerts = alerts.New(alerts.Config{Domain: d.Domain, Console: d.ConsoleURL(), Command: d.AlertCommand, StatusFile: x.Dir.Path(alerts.StatusName), Log: d.Log,
		Parts: alerts.Parts{Store: x.Store, Machine: d.faces.Machine.State, Checks: d.faces.Machine.List, Cells: x.CellUse, WhyCrashed: x.Logs.WhyCrashed, Drains: x.Logs.FailingDrains,
			Certificates: d.faces.Certificates, Backups: d.failingBackups, BackupLags: d.backupLags, Started: time.Now(),
			ACMEFailures: func() ([]acme.Failure, error) { return acme.ReadFailures(x.Dir.Path(acme.StatusFile)) }}})
	d.faces.Alerts = d.alerts.Handler()
	return nil
}

// failingBackups lists the addresses at which the last backup failed.
func (d *daemon) failingBackups() (all []alerts.BackupFailure) {
	for _, s := range d.operations.Offsite.Keeper().Failing() {
		all = append(all, alerts.BackupFailure{To: s.To, Tried: s.Tried, Made: s.IsMade(), Error: s.Error})
	}
	return all
}

// backupLags returns how far the backups at each address lag behind.
func (d *daemon) backupLags() (all []alerts.BackupLag) {
	for _, l := range d.operations.Offsite.Keeper().Lags() {
		all = append(all, alerts.BackupLag{To: l.To, Seconds: l.Seconds, Due: l.Due, Reaches: l.Reach.To, Error: l.Reach.Error})
	}
	return all
}

// admin holds the parts that operators' commands need. said are the last lines of the log.
func (d *daemon) admin(said *support.Log) *admin.Daemon {
	x := d.executor
	a := &admin.Daemon{Dir: x.Dir, Store: x.Store, Blobs: x.Blobs, Volumes: x.Volumes, Stacks: x.Stacks, Keys: d.faces.UAA.Keys, Cell: x.Cell, Cells: x.CellUse, Network: x.Network, Invite: d.faces.Invite, Offer: d.loops.DataBroker.Offer, Log: d.Log}
	a.OpenOffsite(d.Backups, d.Version)
	a.Disk = &disk.Keeper{Dir: x.Dir, Blobs: x.Blobs, Stacks: x.Stacks, Mark: d.Current.LowWater}
	a.Support = &support.Source{Store: x.Store, Disk: a.Disk, Version: d.Version, Config: d.Redacted(), Machine: d.faces.Machine.State, Checks: d.faces.Machine.List, Log: said}
	return a
}

// close closes the parts. Apps continue to run.
func (d *daemon) close() {
	x := d.executor
	d.loops.DataBroker.Close()
	d.loops.Scaling.Close()
	errs := []error{x.Close()}
	if x.Store != nil {
		errs = append(errs, x.Store.Close())
	}
	if x.Dir != nil {
		errs = append(errs, x.Dir.Close())
	}
	if err := errors.Join(errs...); err != nil {
		d.Log.Error("stopped with errors", "err", err)
	}
}
