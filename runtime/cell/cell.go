package cell

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"cupola/runtime/artifact"
	"cupola/runtime/fault"
	"cupola/runtime/health"
	"cupola/runtime/lrp"
)

// Config configures a Cell. Fields are required unless they say otherwise.
type Config struct {
	Dir      string   // state of the containers: <Dir>/<guid>/; made 0700
	Presence lrp.Cell // what the machine is and offers
	// Parts are the logical cells that the machine is carved into; nil: one, which
	// is Presence. Where there are none, nothing new is started here.
	Parts []PartConfig

	Containers Containers
	Network    Network
	RootFS     RootFS
	Images     Images
	Files      Files
	Users      Users
	// Identities issues certificates; nil: containers have none.
	Identities Identities
	// TLSPorts says how the TLS ports of instances work; nil: instances that start
	// have none.
	TLSPorts *TLSPorts
	// Artifacts fetches what containers name by URL, and uploads; nil: only
	// blobs can be had.
	Artifacts *artifact.Store

	// Volumes shows volumes; nil: there are none.
	Volumes Volumes
	// Blob returns the archive with this digest (sha256, hex).
	Blob func(digest string) (path string, err error)
	// Layer returns the archive of a layer of an image (sha256, hex); nil: there are none.
	Layer func(digest string) (path string, err error)
	// Keep stores an output of a task, which may have files of the archive like. The caller closes f.
	Keep func(ctx context.Context, name string, f *os.File, like string) (lrp.Blob, error)
	// Logs receives lines; Events receives events, those of one container in
	// order. Both are called from several goroutines. When Events returns from
	// an EventExited the cell forgets the container: after a kill before that,
	// the next daemon reports it again. Run waits for calls in progress before
	// it returns.
	Logs   func(lrp.LogLine)
	Events func(lrp.Event)
	// Trace is called before a container is created, and may return what takes its trace; nil: nothing is traced.
	Trace func(lrp.Container) func(lrp.Trace)
	// LogTags are tags that every line has, unless its container has others by the
	// name: the agent's of a Diego cell. "index" is the logical cell.
	LogTags map[string]string
	// Freed is called after a container's resources were released, so that
	// waiting containers can use them; may be nil.
	Freed func()

	Log     *slog.Logger
	Workers int // containers created at once; 0: 8
	MaxPids int // for containers that name no limit; 0: 1024
}

// Cell runs the containers of a machine. What is placed on it is placed on one
// of its Parts.
type Cell struct {
	cfg     Config
	boot    string
	slots   chan struct{}
	adopted chan struct{} // closed when Run has adopted, or has ended
	once    sync.Once
	running sync.WaitGroup

	// follow and check are replaced in tests, whose clock stands still while a
	// goroutine reads from the kernel.
	follow followFunc
	check  checkFunc

	policies   policies
	reclaiming sync.Mutex // held while memory of a frozen container is given back
	podsMu     sync.Mutex // held while a container of a pod is given its network
	parts      []*Part    // set by New

	mu            sync.Mutex
	ctx           context.Context // of Run; nil before it has adopted
	reach         reach
	instances     map[string]*instance
	launched      int                 // instances so far
	internalNames map[string][]string // of containers, by GUID
	unclean       map[string]bool     // GUIDs that could not be taken down yet
	downs         map[[2]string]*down // by GUID and name of the step
}

// New makes a Cell. Its parts are known at once; it has nothing until Run has adopted.
func New(cfg Config) (*Cell, error) {
	if cfg.Workers == 0 {
		cfg.Workers = 8
	}
	if cfg.MaxPids == 0 {
		cfg.MaxPids = 1024
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("make state directory: %w", err)
	}
	c := &Cell{
		cfg: cfg, boot: bootID(),
		slots: make(chan struct{}, cfg.Workers), adopted: make(chan struct{}),
		follow: followFIFO, check: health.Run,
		instances: map[string]*instance{}, unclean: map[string]bool{}, downs: map[[2]string]*down{},
	}
	return c, c.makeParts()
}

// sweepInterval is how often a container that could not be taken down is
// tried again.
const sweepInterval = 30 * time.Second

// Run adopts what an earlier Run left, then runs the cell until ctx ends.
// Containers go on running when it has returned.
func (c *Cell) Run(ctx context.Context) error {
	defer c.once.Do(func() { close(c.adopted) })
	if err := c.adopt(ctx); err != nil {
		return err
	}
	c.once.Do(func() { close(c.adopted) })
	renew := fault.Loop(ctx, "cell", func(ctx context.Context) error { c.renewEach(ctx); return nil })
	c.running.Go(fault.Func("cell", func() { _ = renew() }))
	tick := time.NewTicker(sweepInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			_ = fault.Guard("cell", func() error { c.sweep(ctx); return nil }) // Guard reports a panic
		case <-ctx.Done():
			c.running.Wait()
			return nil
		}
	}
}

// Adopted is closed when the cell knows what an earlier Run left.
func (c *Cell) Adopted() <-chan struct{} { return c.adopted }

// Start creates and starts spec. It blocks only until Run has adopted; events
// report the result, including a failed creation. A GUID that the cell already
// has is ignored.
func (c *Cell) Start(spec lrp.Container) {
	<-c.adopted
	i := newInstance(c, spec)
	i.trace = c.newTrace(i.spec)
	c.launch(i, (&build{instance: i, full: spec}).create)
}

// launch lets live run as the one goroutine of i.
func (c *Cell) launch(i *instance, live func(context.Context)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx == nil || c.ctx.Err() != nil || c.instances[i.spec.GUID] != nil {
		return
	}
	ctx := c.ctx
	c.launched++
	i.order = c.launched
	c.instances[i.spec.GUID] = i
	c.running.Go(fault.Func("cell", func() {
		if err := fault.Guard("cell", func() error { live(ctx); return nil }); err != nil {
			i.broke(ctx, err)
		}
	}))
}

// forget ends what launch began.
func (c *Cell) forget(i *instance) {
	c.mu.Lock()
	delete(c.instances, i.spec.GUID)
	c.mu.Unlock()
	if c.cfg.Freed != nil {
		c.cfg.Freed()
	}
}

// Stop stops a container: SIGTERM, SIGKILL after 10 s. It returns at once; an
// EventExited with Stopped reports the end. An unknown GUID is ignored.
func (c *Cell) Stop(guid string) {
	<-c.adopted
	if i := c.instance(guid); i != nil {
		i.requestStop()
		fault.Go("cell", i.thawToEnd)
	}
}

func (c *Cell) instance(guid string) *instance {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.instances[guid]
}

func (c *Cell) all() []*instance {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Values(c.instances))
}

// Containers lists the cell's containers by GUID. It waits until Run has
// adopted, so that a container that is not adopted yet does not look gone.
func (c *Cell) Containers() []lrp.ContainerStatus {
	<-c.adopted
	var list []lrp.ContainerStatus
	for _, i := range c.all() {
		list = append(list, i.status())
	}
	slices.SortFunc(list, func(a, b lrp.ContainerStatus) int { return cmp.Compare(a.GUID, b.GUID) })
	return list
}

// errStopped ends the creation of a container that Stop was called for.
var errStopped = errors.New("stopped")
