// Package executor is what runs a daemon's containers: the cell, and what it is
// made of on this machine. It opens these parts on an open data directory and
// store, runs them and closes them.
package executor

import (
	"context"
	"errors"
	"net"
	"sync"

	"cupola/rootfs"
	"cupola/rootfs/volume"
	"cupola/runtime/artifact"
	"cupola/runtime/cell"
	"cupola/runtime/container"
	"cupola/runtime/egress"
	"cupola/runtime/fault"
	"cupola/runtime/files"
	"cupola/runtime/identity"
	"cupola/runtime/lrp"
	"cupola/runtime/network"
	"cupola/server/acme"
	"cupola/server/admin/cleanup"
	"cupola/server/admin/stack"
	"cupola/server/cells"
	"cupola/server/config"
	"cupola/server/datadir"
	"cupola/server/dns"
	"cupola/server/images"
	"cupola/server/kube/podcell"
	"cupola/server/loggregator"
	"cupola/server/sleep"
	"cupola/store"
	"cupola/store/blob"
)

// Executor is what runs containers. Its parts are opened in the order of the
// methods; those before the first blank line are given.
type Executor struct {
	*config.Config
	Dir    *datadir.Dir
	Store  *store.Store
	Blobs  *blob.Store
	Events func(lrp.Event)                     // receives what happens to containers
	Freed  func()                              // runs after a container released its resources
	Trace  func(lrp.Container) func(lrp.Trace) // as in cell.Config; nil: nothing is traced

	Roots      *rootfs.Store
	Stacks     *stack.Library
	Images     images.Images
	Volumes    *volume.Store
	Containers *container.Engine
	Files      *files.Store
	Network    *network.Network
	Inside     map[string]net.Listener // of the router in the containers' network, by the flags of those outside
	Names      *dns.Server             // nil where another program has the port
	Logs       *loggregator.Stream     // of apps
	Identities *identity.Authority
	Users      cell.Users // of the host, for each container
	Cell       *cell.Cell
	Pods       []*podcell.Cell // clusters of Kubernetes
	Pulls      *podcell.Pulls  // nil where they pull nothing from here

	machine cells.Machine
}

// Egress says where the daemon may connect when a user names the address.
func (e *Executor) Egress() egress.Guard {
	return egress.Guard{Local: e.AllowLoopback, Containers: e.Dir.Owner().Subnet, Listeners: e.IsListener}
}

// OpenRoots opens stacks and images.
func (e *Executor) OpenRoots(context.Context) error {
	registries, err := e.Registries.Open()
	if err != nil {
		return err
	}
	open := e.Dir.Roots
	if e.None {
		open = e.Dir.Unmounted
	}
	if e.Roots, err = open(registries, e.Egress()); err != nil {
		return err
	}
	e.machine = cells.Machine{Config: e.Config.Config, DataDir: e.DataDir, Roots: e.Roots, DataServices: len(e.DataServices) > 0}
	e.Stacks = &stack.Library{Dir: e.Dir, Store: e.Store, Roots: e.Roots, Machine: e.machine, Default: e.DefaultStack, Offered: e.offerStacks, GC: &sync.Mutex{}, Log: e.Log}
	e.Blobs.Unpacked = e.Roots.Layers
	e.Images = images.Images{Roots: e.Roots, Blobs: e.Blobs}
	return nil
}

// ACMEConfig says how to get certificates from an ACME server.
func (e *Executor) ACMEConfig() acme.Config {
	return acme.Config{Flags: e.ACME, Store: e.Store, Domain: e.Domain, HTTP: e.HTTP, HTTPS: e.HTTPS, StatusFile: e.Dir.Path(acme.StatusFile), Log: e.Log}
}

// CellUse returns the logical cells and what they use.
func (e *Executor) CellUse() []lrp.CellUse { return cells.Use(e.Cells()) }

// offerStacks updates what cells offer, once there are cells.
func (e *Executor) offerStacks() {
	if e.Cell != nil {
		e.machine.Offer(e.Cell)
	}
}

// OpenVolumes opens the volumes of data services and deployments.
func (e *Executor) OpenVolumes(context.Context) (err error) {
	e.Volumes, err = e.Dir.Volumes(e.Roots)
	return err
}

// OpenContainers opens the container engine and the containers' small files.
func (e *Executor) OpenContainers(context.Context) (err error) {
	if e.None {
		return e.refuseContainers()
	}
	if e.Containers, err = e.Dir.Containers(container.Kind(e.Engine), e.machine.Groups(e.Log)); err != nil {
		return err
	}
	e.Files, err = e.Dir.Files()
	return err
}

// OpenNetwork opens the containers' network and internal DNS.
func (e *Executor) OpenNetwork(ctx context.Context) (err error) {
	if e.None {
		return nil
	}
	listens, inside := e.routerListens()
	if e.Network, err = e.Dir.Network(listens...); err != nil {
		return err
	}
	e.openInside(ctx, inside)
	e.openNames()
	return nil
}

// OpenCell opens the cell, with the logs, users and certificates of containers.
// What ran before continues to run.
func (e *Executor) OpenCell(ctx context.Context) (err error) {
	e.Logs = loggregator.New(loggregator.Config{Logs: e.Dir.Path("logs"), Archive: e.Dir.Path("log-archive"), ArchiveBytes: e.LogArchiveBytes(), ArchiveDays: e.LogArchiveDays, Metrics: e.Dir.Path("metrics"), Saved: e.Dir.Path("logs.gob"), Where: e.Egress(), Store: e.Store, Log: e.Log})
	artifacts, err := artifact.New(artifact.Config{Dir: e.Dir.Path("artifacts")})
	if err != nil {
		return err
	}
	if e.Identities, err = identity.Open(e.Dir.Path("identity"), e.InstanceCertLife); err != nil {
		return err
	}
	if e.None {
		e.Users = e.Dir.SharedUsers()
	} else if e.Users, err = e.Dir.Users(ctx, e.Roots); err != nil {
		return err
	}
	tlsPorts, err := e.tlsPorts()
	if err != nil {
		return err
	}
	cfg := cell.Config{Dir: e.Dir.Path("cell"), Presence: e.machine.Presence(), Parts: e.machine.Parts(), RootFS: e.Roots, Images: e.Roots.Images,
		Users: e.Users, Artifacts: artifacts, Identities: e.Identities, TLSPorts: tlsPorts,
		Volumes: e.Volumes, Blob: e.Blobs.Path, Layer: e.Roots.Images.BlobPath, Keep: e.Images.Keep, Logs: e.Logs.Line, LogTags: loggregator.CellTags(), Events: e.Events, Freed: e.Freed, Trace: e.Trace, Log: e.Log}
	if e.None {
		cfg.Containers, cfg.Network, cfg.Files = noContainers{}, noNetwork{}, noFiles{}
	} else {
		cfg.Containers, cfg.Network, cfg.Files = cell.Engine(e.Containers), e.containerNetwork(), e.Files
	}
	if e.Cell, err = cell.New(cfg); err != nil {
		return err
	}
	e.Logs.InstanceTags = e.logTags
	return e.openPods(ctx)
}

// Freeze stops the processes of an instance where they are.
func (e *Executor) Freeze(ctx context.Context, instanceGUID string) error {
	if e.podsWith(instanceGUID) != nil {
		return sleep.ErrNoFreezer
	}
	err := e.Cell.Freeze(ctx, instanceGUID)
	if errors.Is(err, container.ErrNoFreezer) {
		return sleep.ErrNoFreezer
	}
	return err
}

// Start runs the parts in a group until live ends.
func (e *Executor) Start(live context.Context, group *fault.Group) {
	group.Go(fault.ErrFunc("cell", func() error { return e.Cell.Run(live) }))
	if e.Pulls != nil {
		group.Go(fault.Loop(live, "registry", func(ctx context.Context) error { return e.Pulls.Serve(ctx, e.Dir.Authority, e.Log) }))
	}
	for _, p := range e.Pods {
		group.Go(fault.Loop(live, "pods", p.Run))
		group.Go(fault.Loop(live, "measure", func(ctx context.Context) error { return e.Logs.Measure(ctx, p.Measure) })) // its nodes may be slow to tell
	}
	if e.Names != nil {
		group.Go(fault.Loop(live, "dns", e.Names.Run))
	}
	group.Go(fault.Loop(live, "drain", e.Logs.Drain))
	group.Go(fault.Loop(live, "measure", func(ctx context.Context) error { return e.Logs.Measure(ctx, e.Cell.Measure) }))
	group.Go(fault.Loop(live, "logs", e.Logs.Forget))
	group.Go(fault.Loop(live, "requests", e.Logs.Requests))
	if h := e.Logs.Cache.History; h != nil {
		group.Go(fault.Loop(live, "history", h.Run))
	}
	group.Go(fault.Loop(live, "kernel", func(ctx context.Context) error { e.Stacks.TellKernelChanges(ctx, e.Logs.API); return nil }))
}

// Close closes the parts that are open. Apps continue to run.
func (e *Executor) Close() error {
	var errs []error
	if e.Logs != nil {
		errs = append(errs, e.Logs.Close())
	}
	for _, l := range e.Inside {
		_ = l.Close() // the router has, if it ran
	}
	if e.Names != nil {
		_ = e.Names.Close() // Run has, if it ran
	}
	if e.Pulls != nil {
		e.Pulls.Close()
	}
	if e.Network != nil {
		errs = append(errs, e.Network.Close())
	}
	if e.Roots != nil {
		errs = append(errs, e.Roots.Close())
	}
	return errors.Join(errs...)
}

// Teardown ends all containers. It closes the network.
func (e *Executor) Teardown() error {
	if e.None {
		return nil // pods are for their clusters to end
	}
	r := cleanup.Runtime{Dir: e.Dir, Roots: e.Roots, Volumes: e.Volumes, Containers: e.Containers, Files: e.Files, Network: e.Network, Users: e.Users}
	e.Network = nil
	return r.Teardown()
}

// Undo removes what was opened from the kernel, unless containers are left that need it. It is for a closed executor.
func (e *Executor) Undo(ctx context.Context) error {
	return cleanup.Unused(ctx, e.DataDir, e.Log)
}
