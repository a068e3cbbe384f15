package cell

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"time"

	"cupola/runtime/container"
	"cupola/runtime/logs"
	"cupola/runtime/lrp"
	"cupola/runtime/network"
)

// instance is one container that the cell has. One goroutine lives its life;
// what others ask of it is behind mu, and halt is the request to stop it.
type instance struct {
	cell        *Cell
	spec        lrp.Container // stripped
	dir         string
	order       int             // among the cell's; set before its goroutine runs
	halt        context.Context // done when Stop was called
	requestStop context.CancelFunc
	egress      []network.Rule
	badEgress   error
	limiter     *logs.Limiter // of all output

	tags  logTags
	frost *frost
	trace *trace // nil: it is not traced

	securing sync.Mutex // held while the settings of TLS ports are read and written

	mu       sync.Mutex
	rec      record
	entry    container.Process // how Attach enters; without Env where it was adopted
	measured measured
	usage    usage
	errors   map[string]*lastLines // of processes, by source
}

func newInstance(c *Cell, spec lrp.Container) *instance {
	i := &instance{cell: c, spec: stripped(spec), dir: filepath.Join(c.cfg.Dir, spec.GUID)}
	i.egress, i.badEgress = EgressRules(spec.Egress)
	i.halt, i.requestStop = context.WithCancel(context.Background())
	i.limiter = logs.NewLimiter(spec.LogRateLimitByte)
	i.frost = newFrost()
	i.tags.cell = c.logTags(i.cellID())
	i.tags.set(spec.Log.Tags)
	i.rec = record{Container: i.spec, Boot: c.boot, Phase: lrp.PhaseCreating}
	return i
}

func (i *instance) guid() string { return i.spec.GUID }

// cellID is the logical cell that i is on.
func (i *instance) cellID() string { return i.cell.partID(i.spec) }

// update changes the record in memory.
func (i *instance) update(change func(*record)) {
	i.mu.Lock()
	defer i.mu.Unlock()
	change(&i.rec)
}

// save changes the record in memory and on disk.
func (i *instance) save(change func(*record)) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	change(&i.rec)
	return writeRecord(i.dir, i.rec)
}

// trySave is save for changes that only the next Run would miss: it logs an
// error.
func (i *instance) trySave(change func(*record)) {
	if err := i.save(change); err != nil {
		i.cell.cfg.Log.Error("container record was not kept", "instance_guid", i.guid(), "err", err)
	}
}

func (i *instance) record() record {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.rec
}

// wasStopped reports whether Stop was called, also of an earlier daemon. Unlike record it
// copies nothing: the frames of some callers lie on the stack for as long as the container lives.
func (i *instance) wasStopped() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.rec.Stopped
}

func (i *instance) status() lrp.ContainerStatus {
	r := i.record()
	return lrp.ContainerStatus{
		GUID: i.guid(), Kind: i.spec.Kind, ProcessGUID: i.spec.ProcessGUID, Index: i.spec.Index,
		Phase: r.Phase, Address: r.Address, TLSPorts: r.TLSPorts, ServerCertificateUntil: i.serverCertificateUntil(r), Ready: r.Ready, Role: r.Role,
		MemoryMB: i.spec.MemoryMB, DiskMB: i.spec.DiskMB, CellID: i.cellID(), RootFS: i.spec.RootFS, FilesDigest: r.FilesDigest, LogTags: i.tags.own(),
		Domain: i.spec.Domain, MaxPids: i.spec.MaxPids, RequiredTags: i.spec.Constraint.Require, VolumeDrivers: i.spec.VolumeDrivers,
		Frozen: i.frost.isFrozen(), Failed: r.Ending != nil && r.Ending.Failed,
	}
}

// event makes an event of i, without what its type adds.
func (i *instance) event(t lrp.EventType) lrp.Event {
	r := i.record()
	e := lrp.Event{Type: t, GUID: i.guid(), Kind: i.spec.Kind, At: time.Now(), Address: r.Address, TLSPorts: r.TLSPorts}
	if i.spec.Kind == lrp.KindInstance {
		e.Key = lrp.Key{ProcessGUID: i.spec.ProcessGUID, Index: i.spec.Index}
	}
	return e
}

// removeState takes the state directory away, the last trace of a container, and
// then frees its users.
func (c *Cell) removeState(guid string) error {
	dir := filepath.Join(c.cfg.Dir, guid)
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	return c.cfg.Users.Release(dir)
}
