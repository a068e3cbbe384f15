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
	"cupola/server/databroker"
	"cupola/server/deploy"
	"cupola/server/dns"
	"cupola/server/drain"
	"cupola/server/logcache"
	"cupola/server/metrics"
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

// house is the daemon's parts.
type house struct {
	Config
	lock       *os.File
	store      *store.Store
	blobs      *blob.Store
	roots      *rootfs.Store
	volumes    *volume.Store
	containers *container.Engine
	files      *files.Store
	owners     cell.Users
	network    *network.Network
	names      *dns.Server // nil where the port is another's
	cell       *cell.Cell
	identities *identity.Authority
	loop       *reconcile.Loop
	brokers    *broker.Loop
	dataBroker *databroker.Broker // the built-in service broker; nil where it is off
	dataDoor   net.Listener       // where it listens
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
	routing        *routing
	ports          *router.Ports // nil where there are no TCP routes
	tcpPorts       cf.PortRanges
	deploys        *deploy.Loop
	director       *director.Loop
	wishes         *bbsrows.Cache // what clients of the BBS desire
	bbs            *bbs.Server
	bbsTLSNow      *renewed[*tls.Config] // nil where the BBS has no listener
	ssh            *sshproxy.Proxy       // nil where there is none
	sshKey         string                // the fingerprint of its key
	api            *api.Server
	unseeded       bool       // the rows still have to be brought up to what this daemon offers
	endPolls       func()     // answers the requests that wait for news
	keeping        sync.Mutex // held while what nobody names is taken away, or what is named is gathered
}

func (h *house) path(name ...string) string {
	return filepath.Join(append([]string{h.DataDir}, name...)...)
}

// open opens the parts in the order in which they need each other. What of
// them ran before goes on running.
func open(ctx context.Context, c Config) (*house, error) {
	h := &house{Config: c}
	fault.Watch(func(p *fault.Panic) {
		c.Log.Error("something panicked and was ended alone", "part", p.Part, "err", p, "stack", string(p.Stack))
	})
	for _, step := range []struct {
		what string
		open func(context.Context) error
	}{
		{"data directory", h.openDir}, {"data directory", h.checkWay}, {"limits", h.openLimits}, {"API's address", h.sayAPI}, {"store", h.openStore}, {"network's addresses", h.openSubnet}, {"root filesystems", h.openRoots}, {"volumes", h.openVolumes},
		{"metrics", h.openMetrics}, {"containers", h.openContainers}, {"network", h.openNetwork}, {"cell", h.openCell},
		{"seeds", h.openSeeds}, {"ssh proxy", h.openSSH}, {"control plane", h.openControl}, {"built-in service broker", h.openDataServices},
	} {
		if err := step.open(ctx); err != nil {
			h.close()
			return nil, fmt.Errorf("open the %s: %w", step.what, err)
		}
	}
	return h, nil
}

// errInUse says that a daemon lives on the data directory.
var errInUse = errors.New("is in use by another cupola")

// openDir makes the data directory and takes its lock. It may be passed
// through, since containers reach their roots through it, but not listed.
func (h *house) openDir(context.Context) error {
	if err := durable.MkdirAll(h.DataDir, 0o711); err != nil {
		return err
	}
	if err := h.takeLock(os.O_CREATE | os.O_RDWR); err != nil {
		if errors.Is(err, syscall.EROFS) {
			return fmt.Errorf("%w: %s; what runs of it is ended by 'sudo cupola cleanup --data-dir %s'", err, mendReadOnly, h.DataDir)
		}
		return err
	}
	// An older daemon fetched buildpacks into tmp.
	if err := errors.Join(h.sweepBackups(), os.RemoveAll(h.path("tmp"))); err != nil {
		return err
	}
	// For who finds the lock and not the name the directory was given by.
	_, err := h.lock.WriteAt([]byte(h.DataDir+"\n"), 0)
	return err
}

// mendReadOnly says what an operator does about a disk that was made read-only.
const mendReadOnly = "find out why in the kernel's log, check the disk with fsck and mount it writable"

// takeLock opens the lock's file with flags and keeps others from the data
// directory.
func (h *house) takeLock(flags int) error {
	lock, err := os.OpenFile(h.path("lock"), flags, 0o600)
	if err != nil {
		return err
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		lock.Close()
		return fmt.Errorf("%s %w: stop that one, or give --data-dir", h.DataDir, errInUse)
	}
	h.lock = lock
	return nil
}

// checkWay refuses a data directory that containers cannot reach their files in:
// their users have no rights of root's. Without it all stagings would fail.
func (h *house) checkWay(context.Context) error {
	real, err := filepath.EvalSymlinks(h.DataDir)
	if err != nil {
		return err
	}
	for _, dir := range []string{h.DataDir, real} {
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

func (h *house) openStore(ctx context.Context) (err error) {
	h.store, err = store.Open(store.Config{Dir: h.path("db"), Log: h.Log})
	if err == nil {
		err = h.store.Check(ctx, store.Quick)
	}
	if err != nil {
		return wayBack(h.DataDir, err)
	}
	h.blobs, err = blob.Open(h.path("blobs"))
	return err
}

func (h *house) openRoots(context.Context) (err error) {
	if err := lifecycle.Install(h.path("lifecycle")); err != nil {
		return err
	}
	registries := h.Registries
	guard := h.egress()
	registries.Guard = &guard
	h.roots, err = rootfs.New(rootfs.Config{Dir: h.path("rootfs"), IDMap: rootfs.IDMap(idMap), Tools: lifecycle.Tools(), Registries: registries, Log: h.Log})
	return err
}

func (h *house) openContainers(context.Context) (err error) {
	h.containers, err = container.New(container.Config{Dir: h.path("containers"), CgroupParent: names(h.DataDir).Cgroup, IDMap: container.IDMap(idMap),
		Groups: h.groups(), HelperDir: h.path("lifecycle"), Log: h.Log})
	if err != nil {
		return err
	}
	h.files, err = files.New(files.Config{Dir: h.path("memory")})
	return err
}

func (h *house) openNetwork(context.Context) (err error) {
	if h.network, err = network.New(h.networkConfig()); err != nil {
		return err
	}
	h.openNames()
	return nil
}

func (h *house) openCell(ctx context.Context) (err error) {
	h.logs = logcache.New(logcache.Config{Dir: h.path("logs"), Log: h.Log})
	h.logs.Load(h.path("logs.gob"), h.Log)
	h.drains = drain.New(drain.Config{Where: h.egress(), Report: h.reportDrain})
	artifacts, err := artifact.New(artifact.Config{Dir: h.path("artifacts")})
	if err != nil {
		return err
	}
	if h.identities, err = identity.Open(h.path("identity"), h.InstanceCertLife); err != nil {
		return err
	}
	if h.owners, err = h.users(ctx); err != nil {
		return err
	}
	h.cell, err = cell.New(cell.Config{Dir: h.path("cell"), Presence: h.machine(), Parts: h.parts(), Containers: cell.Engine(h.containers), Network: h.containerNetwork(), RootFS: h.roots,
		Files: h.files, Users: h.owners, Artifacts: artifacts, Identities: h.identities,
		Volumes: h.volumes, Blob: h.blobs.Path, Keep: h.keep, Logs: h.logLine, Events: func(e lrp.Event) { h.loop.Event(e) },
		Freed: func() { h.loop.Freed() }, Log: h.Log})
	return err
}

// users gives each container its own users, or all the same where the data
// directory's files cannot be shown to others.
func (h *house) users(ctx context.Context) (cell.Users, error) {
	if err := h.roots.Shifts(); err != nil {
		h.Log.WarnContext(ctx, "all containers have the same users of this machine, so that one can exhaust the others' limits: see 'cupola doctor'", "err", err)
		return users.Shared(idMap), nil
	}
	return users.Open(users.DefaultDir)
}

// keep stores an output of a task as a blob.
func (h *house) keep(ctx context.Context, name string, f *os.File) (lrp.Blob, error) {
	b, err := h.blobs.Put(ctx, f)
	return lrp.Blob{Name: name, Digest: b.Digest, Size: b.Size}, err
}

func (h *house) openControl(ctx context.Context) (err error) {
	if h.uaa, err = uaa.New(ctx, uaa.Config{Store: h.store, Passwords: h.Passwords, Log: h.Log}); err != nil {
		return err
	}
	h.router, h.routing = router.New(router.Config{Log: h.Log, AccessLog: h.logAccess, DistrustForwarded: true, Services: h.egress(), Gate: h.gate}), newRouting()
	h.openPorts()
	h.openDirector()
	h.deploys = deploy.New(deploy.Config{Store: h.store, Within: api.WithinQuota, Log: h.Log})
	h.wishes = bbsrows.New()
	h.loop = reconcile.New(h.loopConfig(ctx))
	h.openBBS()
	if h.brokers, err = h.newBrokers(); err != nil {
		return err
	}
	polls, endPolls := context.WithCancel(ctx)
	h.endPolls = endPolls
	h.api = api.New(polls, api.Config{
		Store: h.store, Blobs: h.blobs, Log: h.Log, Authenticate: h.authenticate, Slots: h.apiSlots, Stats: h.cell.Stats, Cells: h.cellUse,
		Retire: h.retire, Note: h.note, StackWarning: h.stackWarning, Stacks: apiStacks{h}, Parameters: h.parameters, BindingsPerInstance: h.MaxBindings, MountsFor: h.mountsFor, URL: h.apiURL(), SSH: h.sshInfo(),
		TCPPorts: h.tcpPorts, PortUsable: h.portUsable, RenderBOSH: h.renderBOSH, PackDroplet: h.packDroplet, PackedLayer: h.packedLayer,
	})
	return nil
}

func (h *house) authenticate(ctx context.Context, token string) (api.Identity, error) {
	id, err := h.uaa.Verify(ctx, token)
	return api.Identity(id), err
}

// close closes the parts. Apps go on running.
func (h *house) close() {
	var errs []error
	if h.logs != nil {
		errs = append(errs, h.logs.Save(h.path("logs.gob")))
		h.logs.Close()
	}
	if h.dataDoor != nil {
		_ = h.dataDoor.Close() // serving has, if it did
	}
	if h.names != nil {
		_ = h.names.Close() // Run has, if it ran
	}
	if h.network != nil {
		errs = append(errs, h.network.Close())
	}
	if h.roots != nil {
		errs = append(errs, h.roots.Close())
	}
	if h.store != nil {
		errs = append(errs, h.store.Close())
	}
	if h.lock != nil {
		h.lock.Close()
	}
	if err := errors.Join(errs...); err != nil {
		h.Log.Error("stopped with errors", "err", err)
	}
}
