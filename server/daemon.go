package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"cupola/rootfs"
	"cupola/rootfs/volume"
	"cupola/runtime/artifact"
	"cupola/runtime/cell"
	"cupola/runtime/container"
	"cupola/runtime/contract"
	"cupola/runtime/durable"
	"cupola/runtime/fault"
	"cupola/runtime/files"
	"cupola/runtime/identity"
	"cupola/runtime/lifecycle"
	"cupola/runtime/lrp"
	"cupola/runtime/network"
	"cupola/runtime/users"
	"cupola/server/api"
	"cupola/server/bbs"
	"cupola/server/bbs/bbsrows"
	"cupola/server/bosh/director"
	"cupola/server/broker"
	"cupola/server/bulkhead"
	"cupola/server/control/quota"
	"cupola/server/databroker"
	"cupola/server/deploy"
	"cupola/server/dns"
	"cupola/server/drain"
	"cupola/server/ingress"
	"cupola/server/logcache"
	"cupola/server/metrics"
	"cupola/server/reach"
	"cupola/server/reconcile"
	"cupola/server/router"
	"cupola/server/sshproxy"
	"cupola/server/uaa"
	"cupola/store"
	"cupola/store/blob"
	"cupola/store/cf"
)

// idMap are the user IDs of the host that own what containers share on disk, and
// those of containers that cannot have their own: high enough to meet none of the
// host's, and below those that hosts give to rootless users of their own accord.
var idMap = users.Range{Base: 0x6c000000, Size: users.Size}

// daemon is the parts of a running daemon, or those of them that a command opened.
type daemon struct {
	Config
	lock         *os.File
	store        *store.Store
	blobs        *blob.Store
	roots        *rootfs.Store
	volumes      *volume.Store
	containers   *container.Engine
	files        *files.Store
	owners       cell.Users
	network      *network.Network
	names        *dns.Server // nil where the port is another's
	cell         *cell.Cell
	identities   *identity.Authority
	loop         *reconcile.Loop
	brokers      *broker.Loop
	dataBroker   *databroker.Broker // the built-in service broker; nil where it is off
	dataListener net.Listener       // where it listens
	// dataBrokerGUID is that of its registration; "" where it is off.
	dataBrokerGUID string
	uaa            *uaa.UAA
	logs           *logcache.Cache
	timerTags      timerTags
	metrics        *metrics.Metrics
	drains         *drain.Drains
	limits         bulkhead.Limits
	gate           *router.Gate
	apiSlots       *bulkhead.Share[string] // requests of the API, by user or else by address
	router         *router.Router
	ingress        *ingress.Ingress
	reach          *reach.Reach
	ports          *router.Ports // nil where there are no TCP routes
	tcpPorts       cf.PortRanges
	deploys        *deploy.Loop
	director       *director.Loop
	desired        *bbsrows.Cache // what clients of the BBS desire
	bbs            *bbs.Server
	bbsTLSNow      *renewed[*tls.Config] // nil where the BBS has no listener
	ssh            *sshproxy.Proxy       // nil where there is none
	sshKey         string                // the fingerprint of its key
	api            *api.Server
	unseeded       bool       // the rows still have to be brought up to what this daemon offers
	endPolls       func()     // answers the requests that wait for news
	gcMu           sync.Mutex // held while what nobody names is taken away, or what is named is gathered
}

func (d *daemon) path(name ...string) string {
	return filepath.Join(append([]string{d.DataDir}, name...)...)
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
		{"data directory", d.openDir}, {"data directory", d.checkWay}, {"limits", d.openLimits}, {"API's address", d.sayAPI}, {"store", d.openStore}, {"network's addresses", d.openSubnet}, {"root filesystems", d.openRoots}, {"volumes", d.openVolumes},
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

// errInUse says that a daemon lives on the data directory.
var errInUse = errors.New("is in use by another cupola")

// openDir makes the data directory and takes its lock. It may be passed
// through, since containers reach their roots through it, but not listed.
func (d *daemon) openDir(context.Context) error {
	if err := durable.MkdirAll(d.DataDir, 0o711); err != nil {
		return err
	}
	if err := d.takeLock(os.O_CREATE | os.O_RDWR); err != nil {
		if errors.Is(err, syscall.EROFS) {
			return fmt.Errorf("%w: %s; what runs of it is ended by 'sudo cupola cleanup --data-dir %s'", err, mendReadOnly, d.DataDir)
		}
		return err
	}
	// An older daemon fetched buildpacks into tmp.
	if err := errors.Join(d.sweepBackups(), os.RemoveAll(d.path("tmp"))); err != nil {
		return err
	}
	// For who finds the lock and not the name the directory was given by.
	_, err := d.lock.WriteAt([]byte(d.DataDir+"\n"), 0)
	return err
}

// mendReadOnly says what an operator does about a disk that was made read-only.
const mendReadOnly = "find out why in the kernel's log, check the disk with fsck and mount it writable"

// takeLock opens the lock's file with flags and keeps others from the data
// directory.
func (d *daemon) takeLock(flags int) error {
	lock, err := os.OpenFile(d.path("lock"), flags, 0o600)
	if err != nil {
		return err
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		lock.Close()
		return fmt.Errorf("%s %w: stop that one, or give --data-dir", d.DataDir, errInUse)
	}
	d.lock = lock
	return nil
}

// checkWay refuses a data directory that containers cannot reach their files in:
// their users have no rights of root's. Without it all stagings would fail.
func (d *daemon) checkWay(context.Context) error {
	real, err := filepath.EvalSymlinks(d.DataDir)
	if err != nil {
		return err
	}
	for _, dir := range []string{d.DataDir, real} {
		for ; dir != "/"; dir = filepath.Dir(dir) {
			info, err := os.Stat(dir)
			if err != nil {
				return err
			}
			if info.Mode().Perm()&0o001 == 0 {
				return fmt.Errorf("containers reach their files through %s, which does not let other users pass (mode %#o): run 'chmod o+x %s', or give another --data-dir", dir, info.Mode().Perm(), dir)
			}
		}
	}
	return nil
}

func (d *daemon) openStore(ctx context.Context) (err error) {
	d.store, err = store.Open(store.Config{Dir: d.path("db"), Log: d.Log})
	if err == nil {
		err = d.store.Check(ctx, store.Quick)
	}
	if err != nil {
		return wayBack(d.DataDir, err)
	}
	d.blobs, err = blob.Open(d.path("blobs"))
	return err
}

func (d *daemon) openRoots(context.Context) (err error) {
	if err := lifecycle.Install(d.path("lifecycle")); err != nil {
		return err
	}
	registries := d.Registries
	guard := d.egress()
	registries.Guard = &guard
	d.roots, err = rootfs.New(rootfs.Config{Dir: d.path("rootfs"), IDs: idMap, Tools: contract.Tools(), Registries: registries, Log: d.Log})
	return err
}

func (d *daemon) openContainers(context.Context) (err error) {
	d.containers, err = container.New(container.Config{Dir: d.path("containers"), CgroupParent: names(d.DataDir).Cgroup, IDMap: container.IDMap(idMap),
		Groups: d.groups(), HelperDir: d.path("lifecycle"), Log: d.Log})
	if err != nil {
		return err
	}
	d.files, err = files.New(files.Config{Dir: d.path("memory")})
	return err
}

func (d *daemon) openNetwork(context.Context) (err error) {
	if d.network, err = network.New(d.networkConfig()); err != nil {
		return err
	}
	d.openNames()
	return nil
}

func (d *daemon) openCell(ctx context.Context) (err error) {
	d.logs = logcache.New(logcache.Config{Dir: d.path("logs"), Log: d.Log})
	d.logs.Load(d.path("logs.gob"), d.Log)
	d.drains = drain.New(drain.Config{Where: d.egress(), Report: d.reportDrain})
	artifacts, err := artifact.New(artifact.Config{Dir: d.path("artifacts")})
	if err != nil {
		return err
	}
	if d.identities, err = identity.Open(d.path("identity"), d.InstanceCertLife); err != nil {
		return err
	}
	if d.owners, err = d.users(ctx); err != nil {
		return err
	}
	d.cell, err = cell.New(cell.Config{Dir: d.path("cell"), Presence: d.machine(), Parts: d.parts(), Containers: cell.Engine(d.containers), Network: d.containerNetwork(), RootFS: d.roots, Images: d.roots.Images,
		Files: d.files, Users: d.owners, Artifacts: artifacts, Identities: d.identities,
		Volumes: d.volumes, Blob: d.blobs.Path, Keep: d.keep, Logs: d.logLine, Events: func(e lrp.Event) { d.loop.Event(e) },
		Freed: func() { d.loop.Freed() }, Log: d.Log})
	return err
}

// users gives each container its own users, or all the same where the data
// directory's files cannot be shown to others.
func (d *daemon) users(ctx context.Context) (cell.Users, error) {
	if err := d.roots.Shifts(); err != nil {
		d.Log.WarnContext(ctx, "all containers have the same users of this machine, so that one can exhaust the others' limits: see 'cupola doctor'", "err", err)
		return users.Shared(idMap), nil
	}
	return users.Open(users.DefaultDir)
}

// keep stores an output of a task as a blob.
func (d *daemon) keep(ctx context.Context, name string, f *os.File) (lrp.Blob, error) {
	b, err := d.blobs.Put(ctx, f)
	return lrp.Blob{Name: name, Digest: b.Digest, Size: b.Size}, err
}

func (d *daemon) openControl(ctx context.Context) (err error) {
	if d.uaa, err = uaa.New(ctx, uaa.Config{Store: d.store, Passwords: d.Passwords, Log: d.Log}); err != nil {
		return err
	}
	d.router = router.New(router.Config{Log: d.Log, AccessLog: d.logAccess, DistrustForwarded: true, Services: d.egress(), Gate: d.gate})
	d.openPorts()
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
		Retire: d.retire, Parameters: d.parameters, SSH: d.sshInfo(), RenderBOSH: d.renderBOSH, PackDroplet: d.packDroplet, PackedLayer: d.packedLayer,
	}
	c.URL, c.Cells, c.Note, c.StackWarning, c.Stacks = d.apiURL(), d.cellUse, d.note, d.stackWarning, apiStacks{d}
	c.BindingsPerInstance, c.MountsFor, c.TCPPorts, c.PortUsable = d.MaxBindings, d.mountsFor, d.tcpPorts, d.portUsable
	d.api = api.New(polls, c)
	return nil
}

func (d *daemon) authenticate(ctx context.Context, token string) (api.Identity, error) {
	id, err := d.uaa.Verify(ctx, token)
	return api.Identity(id), err
}

// close closes the parts. Apps go on running.
func (d *daemon) close() {
	var errs []error
	if d.logs != nil {
		errs = append(errs, d.logs.Save(d.path("logs.gob")))
		d.logs.Close()
	}
	if d.dataListener != nil {
		_ = d.dataListener.Close() // serving has, if it did
	}
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
	if d.lock != nil {
		d.lock.Close()
	}
	if err := errors.Join(errs...); err != nil {
		d.Log.Error("stopped with errors", "err", err)
	}
}
