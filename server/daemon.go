package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"sync"

	"cupola/rootfs"
	"cupola/rootfs/volume"
	"cupola/runtime/artifact"
	"cupola/runtime/cell"
	"cupola/runtime/container"
	"cupola/runtime/fault"
	"cupola/runtime/files"
	"cupola/runtime/identity"
	"cupola/runtime/lrp"
	"cupola/runtime/network"
	"cupola/server/admin"
	"cupola/server/admin/backup"
	"cupola/server/admin/cleanup"
	"cupola/server/admin/database"
	"cupola/server/admin/leak"
	"cupola/server/admin/stack"
	"cupola/server/api"
	"cupola/server/bbs"
	"cupola/server/bbs/bbsrows"
	"cupola/server/bosh/director"
	"cupola/server/broker"
	"cupola/server/bulkhead"
	"cupola/server/cells"
	"cupola/server/control/quota"
	"cupola/server/databroker"
	"cupola/server/datadir"
	"cupola/server/deploy"
	"cupola/server/dns"
	"cupola/server/front"
	"cupola/server/images"
	"cupola/server/ingress"
	"cupola/server/loggregator"
	"cupola/server/metrics"
	"cupola/server/reach"
	"cupola/server/reconcile"
	"cupola/server/router"
	"cupola/server/seed"
	"cupola/server/sshproxy"
	"cupola/server/uaa"
	"cupola/store"
	"cupola/store/blob"
	"cupola/store/cf"
)

// daemon is the parts of a running daemon, or those of them that a command opened.
type daemon struct {
	Config
	dir         *datadir.Dir
	store       *store.Store
	blobs       *blob.Store
	roots       *rootfs.Store
	machine     cells.Machine
	stacks      *stack.Library
	images      images.Images
	volumes     *volume.Store
	containers  *container.Engine
	files       *files.Store
	owners      cell.Users
	network     *network.Network
	names       *dns.Server // nil where the port is another's
	cell        *cell.Cell
	identities  *identity.Authority
	loop        *reconcile.Loop
	brokers     *broker.Loop
	dataBroker  *databroker.Service // the built-in service broker; nil where it is off
	uaa         *uaa.UAA
	logs        *loggregator.Stream
	metrics     *metrics.Metrics
	limits      bulkhead.Limits
	gate        *router.Gate
	apiSlots    *bulkhead.Share[string] // requests of the API, by user or else by address
	router      *router.Router
	ingress     *ingress.Ingress
	reach       *reach.Reach
	ports       *router.Ports // nil where there are no TCP routes
	tcpPorts    cf.PortRanges
	deploys     *deploy.Loop
	director    *director.Loop
	desired     *bbsrows.Cache // what clients of the BBS desire
	bbs         *bbs.Server
	bbsEndpoint *bbs.Endpoint   // nil where the BBS has no listener
	ssh         *sshproxy.Proxy // nil where there is none
	sshKey      string          // the fingerprint of its key
	api         *api.Server
	seeds       *seed.Seeds
	endPolls    func()     // answers the requests that wait for news
	gcMu        sync.Mutex // held while what nobody names is taken away, or what is named is gathered
}

// open opens the parts in the order in which they need each other. What of
// them ran before goes on running.
func open(ctx context.Context, c Config) (*daemon, error) {
	d := &daemon{Config: c}
	fault.Watch(func(p *fault.Panic) {
		c.Log.Error("something panicked and was ended alone", "part", p.Part, "err", p, "stack", string(p.Stack))
	})
	for _, step := range []struct {
		what string
		open func(context.Context) error
	}{
		{"data directory", d.openDir}, {"data directory", func(context.Context) error { return d.dir.CheckReachable() }}, {"limits", d.openLimits}, {"API's address", func(context.Context) error { return d.dir.WriteAPI(d.HTTP) }}, {"store", d.openStore}, {"network's addresses", func(ctx context.Context) error { return d.dir.OpenSubnet(ctx) }}, {"root filesystems", d.openRoots}, {"volumes", d.openVolumes},
		{"metrics", d.openMetrics}, {"containers", d.openContainers}, {"network", d.openNetwork}, {"cell", d.openCell},
		{"seeds", d.openSeeds}, {"ssh proxy", d.openSSH}, {"control plane", d.openControl}, {"built-in service broker", d.openDataServices},
	} {
		if err := step.open(ctx); err != nil {
			d.close()
			return nil, fmt.Errorf("open the %s: %w", step.what, err)
		}
	}
	return d, nil
}

func (d *daemon) openDir(context.Context) (err error) {
	d.dir, err = datadir.Open(d.DataDir, d.Log)
	return err
}

// openLimits derives the budgets of connections and requests from how many
// files this process may open.
func (d *daemon) openLimits(context.Context) error {
	limits, err := bulkhead.ProcessLimits()
	if err != nil {
		return err
	}
	d.limits, d.gate, d.apiSlots = limits, router.NewGate(limits), bulkhead.NewShare[string](limits.API, 1)
	return nil
}

func (d *daemon) openStore(ctx context.Context) (err error) {
	if d.store, err = d.dir.Store(ctx); err != nil {
		return err
	}
	d.blobs, err = d.dir.Blobs()
	return err
}

func (d *daemon) openRoots(context.Context) (err error) {
	registries, err := d.Registries.Open()
	if err != nil {
		return err
	}
	if d.roots, err = d.dir.Roots(registries, d.egress()); err != nil {
		return err
	}
	d.machine = cells.Machine{Config: d.Config.Config, DataDir: d.DataDir, Roots: d.roots, DataServices: len(d.DataServices) > 0}
	d.stacks = &stack.Library{Dir: d.dir, Store: d.store, Roots: d.roots, Machine: d.machine, Default: d.DefaultStack, Offered: d.offerStacks, GC: &d.gcMu, Log: d.Log}
	d.images = images.Images{Roots: d.roots, Blobs: d.blobs}
	return nil
}

// offerStacks updates what cells offer, once there are cells.
func (d *daemon) offerStacks() {
	if d.cell != nil {
		d.machine.Offer(d.cell)
	}
}

func (d *daemon) openVolumes(context.Context) (err error) {
	d.volumes, err = d.dir.Volumes(d.roots)
	return err
}

func (d *daemon) openContainers(context.Context) (err error) {
	if d.containers, err = d.dir.Containers(d.machine.Groups(d.Log)); err != nil {
		return err
	}
	d.files, err = d.dir.Files()
	return err
}

func (d *daemon) openSeeds(ctx context.Context) error {
	d.seeds = &seed.Seeds{Store: d.store, Blobs: d.blobs, Stacks: d.stacks.Rows, DataDir: d.DataDir, Domain: d.Domain, Password: d.AdminPassword, Log: d.Log}
	return d.seeds.Open(ctx)
}

func (d *daemon) openNetwork(context.Context) (err error) {
	if d.network, err = d.dir.Network(ports(d.HTTP, d.HTTPS)...); err != nil {
		return err
	}
	d.openNames()
	return nil
}

func (d *daemon) openCell(ctx context.Context) (err error) {
	d.logs = loggregator.New(loggregator.Config{Logs: d.dir.Path("logs"), Saved: d.dir.Path("logs.gob"), Where: d.egress(), Store: d.store, Log: d.Log})
	artifacts, err := artifact.New(artifact.Config{Dir: d.dir.Path("artifacts")})
	if err != nil {
		return err
	}
	if d.identities, err = identity.Open(d.dir.Path("identity"), d.InstanceCertLife); err != nil {
		return err
	}
	if d.owners, err = d.dir.Users(ctx, d.roots); err != nil {
		return err
	}
	d.cell, err = cell.New(cell.Config{Dir: d.dir.Path("cell"), Presence: d.machine.Presence(), Parts: d.machine.Parts(), Containers: cell.Engine(d.containers), Network: d.containerNetwork(), RootFS: d.roots, Images: d.roots.Images,
		Files: d.files, Users: d.owners, Artifacts: artifacts, Identities: d.identities,
		Volumes: d.volumes, Blob: d.blobs.Path, Keep: d.keep, Logs: d.logs.Line, Events: func(e lrp.Event) { d.loop.Event(e) },
		Freed: func() { d.loop.Freed() }, Log: d.Log})
	return err
}

// keep stores an output of a task as a blob.
func (d *daemon) keep(ctx context.Context, name string, f *os.File) (lrp.Blob, error) {
	b, err := d.blobs.Put(ctx, f)
	return lrp.Blob{Name: name, Digest: b.Digest, Size: b.Size}, err
}

func (d *daemon) openControl(ctx context.Context) (err error) {
	passwords, err := uaa.ParsePolicy(d.PasswordPolicy)
	if err != nil {
		return err
	}
	if d.uaa, err = uaa.New(ctx, uaa.Config{Store: d.store, Passwords: passwords, Log: d.Log}); err != nil {
		return err
	}
	d.router = router.New(router.Config{Log: d.Log, AccessLog: d.accessed, DistrustForwarded: true, Services: d.egress(), Gate: d.gate})
	tcp := front.TCP{Address: d.TCP, Router: d.router, Held: d.Listeners, Manager: d.Manager, Say: d.logs.Router, Log: d.Log}
	d.ports, d.tcpPorts = tcp.Open()
	d.openDirector()
	d.deploys = deploy.New(deploy.Config{Store: d.store, Within: quota.WithinProcesses, Log: d.Log})
	d.desired = bbsrows.New()
	d.reach = reach.New(reach.Config{Store: d.store, Cell: d.cell, Log: d.Log})
	d.ingress = ingress.New(ingress.Config{Store: d.store, Router: d.router, Names: d.names, BBS: d.desired, Domain: d.Domain, Log: d.Log})
	d.loop = reconcile.New(d.loopConfig(ctx))
	d.openBBS()
	if d.brokers, err = d.newBrokers(); err != nil {
		return err
	}
	polls, endPolls := context.WithCancel(ctx)
	d.endPolls = endPolls
	c := api.Config{
		Store: d.store, Blobs: d.blobs, Log: d.Log, Authenticate: d.authenticate, Slots: d.apiSlots, Stats: d.cell.Stats,
		Retire: d.retire, Parameters: d.parameters, SSH: d.sshInfo(), RenderBOSH: d.renderBOSH, PackDroplet: d.images.PackDroplet, PackedLayer: d.images.OpenLayer,
	}
	c.URL, c.Cells, c.Note, c.StackWarning, c.Stacks = d.apiURL(), d.cellUse, d.logs.API, d.images.Warning, stack.ForAPI{Library: d.stacks}
	c.BindingsPerInstance, c.MountsFor, c.TCPPorts, c.PortUsable = d.MaxBindings, func(brokerGUID string) bool { return d.dataBroker.Mounts(brokerGUID) }, d.tcpPorts, d.portUsable
	d.api = api.New(polls, c)
	return nil
}

// accessed counts a request to an app, and says it in the app's log.
func (d *daemon) accessed(e router.AccessEntry) {
	d.metrics.Requested(metrics.Request{Status: e.Status, Routed: e.AppGUID != "", Took: e.At.Sub(e.Began)})
	d.logs.Access(e)
}

// portUsable is nil when this machine listens at a port for routes, or can.
func (d *daemon) portUsable(port int) error {
	if d.ports == nil {
		return nil
	}
	return d.ports.Usable(port)
}

func (d *daemon) authenticate(ctx context.Context, token string) (api.Identity, error) {
	id, err := d.uaa.Verify(ctx, token)
	return api.Identity(id), err
}

func (d *daemon) openDataServices(ctx context.Context) (err error) {
	if len(d.DataServices) == 0 {
		return nil
	}
	d.dataBroker, err = databroker.Open(ctx, databroker.Config{Store: d.store, Services: d.DataServices, Volumes: d.volumes,
		Attach: d.cell.Attach, Containers: d.cell.Containers, HasStack: d.hasDataStack, Log: d.Log})
	return err
}

func (d *daemon) hasDataStack() bool {
	_, ok := d.roots.Stacks.Get(databroker.Stack)
	return ok
}

// close closes the parts. Apps go on running.
func (d *daemon) close() {
	var errs []error
	if d.logs != nil {
		errs = append(errs, d.logs.Close())
	}
	d.dataBroker.Close()
	if d.names != nil {
		_ = d.names.Close() // Run has, if it ran
	}
	if d.network != nil {
		errs = append(errs, d.network.Close())
	}
	if d.roots != nil {
		errs = append(errs, d.roots.Close())
	}
	if d.store != nil {
		errs = append(errs, d.store.Close())
	}
	if d.dir != nil {
		errs = append(errs, d.dir.Close())
	}
	if err := errors.Join(errs...); err != nil {
		d.Log.Error("stopped with errors", "err", err)
	}
}

func (d *daemon) cellUse() []lrp.CellUse { return cells.Use(d.cell) }

// admin is what operators' commands need.
func (d *daemon) admin() *admin.Daemon {
	return &admin.Daemon{
		Stacks:       d.stacks,
		Backup:       &backup.Maker{Dir: d.dir, Store: d.store, Blobs: d.blobs, Volumes: d.volumes, Stacks: d.stacks, GC: &d.gcMu},
		Database:     d.database(),
		DataServices: databroker.Status{Store: d.store, Volumes: d.volumes, Log: d.Log},
		Keys:         d.uaa.Keys,
		Leaks:        leak.Running(d.cell, d.network),
	}
}

func (d *daemon) database() *database.Keeper {
	return &database.Keeper{Dir: d.dir, Store: d.store, Log: d.Log}
}

// teardown ends all containers. It closes the network.
func (d *daemon) teardown() error {
	r := cleanup.Runtime{Dir: d.dir, Roots: d.roots, Volumes: d.volumes, Containers: d.containers, Files: d.files, Network: d.network, Users: d.owners}
	d.network = nil
	return r.Teardown()
}

// ports are those of the addresses that have one.
func ports(addrs ...string) (all []uint16) {
	for _, a := range addrs {
		_, port, err := net.SplitHostPort(a)
		if err != nil {
			continue
		}
		if n, err := strconv.ParseUint(port, 10, 16); err == nil {
			all = append(all, uint16(n))
		}
	}
	return all
}
