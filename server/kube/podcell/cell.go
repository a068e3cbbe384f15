package podcell

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/netip"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"cupola/rootfs/reference"
	"cupola/runtime/fault"
	"cupola/runtime/lrp"
	"cupola/runtime/tunnel"
	"cupola/server/kube"
	"cupola/server/kube/apply"
)

// Cluster is what a Cell asks of a Kubernetes cluster.
type Cluster interface {
	Create(ctx context.Context, o kube.Object) error
	Change(ctx context.Context, kind, name string, change map[string]any) error
	Remove(ctx context.Context, kind, name string, grace time.Duration) error
	Names(ctx context.Context, kind, selector string) ([]string, error)
	Follow(ctx context.Context, f apply.Following) error
	Logs(ctx context.Context, pod, container string, since time.Time) (io.ReadCloser, error)
	Events(ctx context.Context, pod string) ([]kube.Object, error)
	Summary(ctx context.Context, node string) ([]byte, error)
	Exec(ctx context.Context, pod, container string, argv ...string) (io.ReadWriteCloser, error)
}

// Config says what a Cell is made of.
type Config struct {
	Presence lrp.Cell // without what it has: that is the nodes'
	Owner    string   // of the data directory; a valid label
	Dir      string   // how far logs were read; made 0700
	Cluster  Cluster
	Pulls    *Pulls // nil where the cluster runs images of other registries alone
	// Tunnel says how pods are reached: one of cells' Tunnel…; "" is TunnelNever.
	Tunnel string
	// Addresses are those that the router connects from; nil: those of this machine.
	Addresses func() []netip.Addr
	// Logs, Events and Freed are as in cell.Config.
	Logs    func(lrp.LogLine)
	LogTags map[string]string
	Events  func(lrp.Event)
	Freed   func()
	Log     *slog.Logger
}

// Cell runs containers as pods.
type Cell struct {
	cfg      Config
	pods     kube.InstanceOptions
	running  sync.WaitGroup
	usage    usages
	slots    chan struct{} // full of requests of instances
	policies *policies
	agent    *agent
	tunnel   *tunnel.Client
	places   sync.Map     // the containers' addresses → GUIDs
	proven   atomic.Int64 // when a pod answered at its address last
	// tunnelled is when one did by the tunnel.
	tunnelled atomic.Int64
	finding   atomic.Bool // findWay runs

	mu        sync.Mutex
	asked     time.Time       // when events were asked for last
	ctx       context.Context // of Run; nil before it
	known     bool            // the pods were listed
	reached   bool            // the cluster answers
	silence   error           // why it does not; nil if it does, or was not asked yet
	lists     int             // lists of pods that were begun
	left      []string        // Secrets of an earlier daemon; nil once they were looked at
	instances map[string]*instance
	nodes     map[string]kube.Room
	blind     bool // the nodes may not be listed
}

// maxAtOnce is how many requests for instances are under way: an API server refuses or delays more than it has room for, which then
// are tried again, and it has others to answer.
const maxAtOnce = 32

// New makes a Cell. It has nothing until Run has listed the pods.
func New(cfg Config) (*Cell, error) {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("make state directory: %w", err)
	}
	if cfg.Addresses == nil {
		cfg.Addresses = addresses
	}
	c := &Cell{cfg: cfg, pods: kube.InstanceOptions{Cell: cfg.Presence.ID, Owner: cfg.Owner}, instances: map[string]*instance{}, nodes: map[string]kube.Room{}, slots: make(chan struct{}, maxAtOnce)}
	c.policies, c.agent = newPolicies(c), newAgent(c)
	c.tunnel = newTunnel(c)
	if cfg.Pulls != nil {
		cfg.Pulls.add(c)
	}
	return c, nil
}

// Run follows the pods and nodes until ctx ends. Pods go on running.
func (c *Cell) Run(ctx context.Context) error {
	c.mu.Lock()
	c.ctx = ctx
	c.mu.Unlock()
	c.running.Go(fault.Func("podcell", func() {
		_ = c.cfg.Cluster.Follow(ctx, apply.Following{Kind: "Node", Begin: func() {}, All: c.allNodes, Changed: c.node, Gone: c.nodeGone, Reached: c.nodesReached})
	}))
	c.running.Go(fault.Func("podcell", func() { c.policies.run(ctx) }))
	c.running.Go(fault.Func("podcell", func() { c.agent.run(ctx) }))
	err := c.cfg.Cluster.Follow(ctx, apply.Following{Kind: "Pod", Selector: c.pods.Selector(), Begin: c.begin, All: c.all, Changed: c.pod, Gone: c.gone, Reached: c.reach})
	c.running.Wait()
	c.tunnel.Close()
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// reach notes whether the cluster answers.
func (c *Cell) reach(ok bool, err error) {
	c.mu.Lock()
	changed := c.reached != ok
	c.reached, c.silence = ok, err
	c.mu.Unlock()
	switch {
	case !changed && !ok:
		c.cfg.Log.Debug("cluster does not answer", "cell", c.pods.Cell, "err", err)
	case !ok:
		c.cfg.Log.Warn("cluster does not answer: what runs there is left as it is", "cell", c.pods.Cell, "err", err)
	case changed:
		c.cfg.Log.Info("cluster answers", "cell", c.pods.Cell)
		c.freed()
	}
}

func (c *Cell) freed() {
	if c.cfg.Freed != nil {
		c.cfg.Freed()
	}
}

// Presence is the cell with what its nodes have for pods.
func (c *Cell) Presence() lrp.Cell {
	p := c.cfg.Presence
	if c.cfg.Pulls != nil {
		p.RootFSes, p.NoStaging = c.cfg.Pulls.Stacks(), false
	}
	if p.Tunnel, p.Problem = c.agent.state(); p.Problem != "" {
		p.Mend = "'kubectl describe pod " + kube.AgentName(c.pods) + "' in the namespace of the cell; or give this machine a route to the pods"
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	p.Unreachable = !c.known || !c.reached
	if p.Unreachable && c.silence != nil {
		p.Problem, p.Mend = "the API server does not answer: "+plain(c.silence).Error(), mendOf(c.silence)
		if apply.Unauthorized(c.silence) || apply.Refused(c.silence) {
			p.Problem = "the API server refuses requests: " + c.silence.Error()
		}
	}
	if c.blind {
		p.MemoryMB, p.DiskMB, p.Containers = unknownRoom, unknownRoom, unknownRoom
		return p
	}
	for _, r := range c.nodes {
		p.MemoryMB, p.DiskMB, p.Containers = p.MemoryMB+r.MemoryMB, p.DiskMB+r.DiskMB, p.Containers+r.Pods
	}
	return p
}

// unknownRoom is what a cluster counts as having that shows no nodes: the scheduler of the
// cluster then decides alone.
const unknownRoom = 1 << 30

func (c *Cell) allNodes(all []kube.Object) {
	c.mu.Lock()
	c.nodes, c.blind = map[string]kube.Room{}, false
	for _, o := range all {
		c.nodes[o.Name()] = kube.RoomOf(o)
	}
	c.mu.Unlock()
	c.freed()
}

func (c *Cell) node(o kube.Object) {
	c.mu.Lock()
	was, is := c.nodes[o.Name()], kube.RoomOf(o)
	c.nodes[o.Name()] = is
	c.mu.Unlock()
	if was != is {
		c.freed()
	}
}

// isSilent reports whether a node is known not to answer.
func (c *Cell) isSilent(node string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.nodes[node].Silent
}

func (c *Cell) nodeGone(o kube.Object) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.nodes, o.Name())
}

// nodesReached notes that the nodes may not be seen.
func (c *Cell) nodesReached(ok bool, err error) {
	c.mu.Lock()
	was := c.blind
	c.blind = !ok && (c.blind || apply.Refused(err))
	is := c.blind
	c.mu.Unlock()
	if is && !was {
		c.cfg.Log.Warn("nodes of the cluster cannot be listed: its cell counts as having room for everything", "cell", c.pods.Cell, "err", err)
		c.freed()
	}
}

// Start makes a container a pod. It returns at once. A GUID that the cell already has is ignored.
func (c *Cell) Start(spec lrp.Container) {
	spec.CellID = c.pods.Cell
	packs := c.packs(spec)
	objects, err := c.render(spec, packs, kube.PackedImage{})
	if err != nil {
		objects.Record.Container = spec
	}
	i := newInstance(c, objects.Record)
	i.made = making
	if err == nil && i.staging != nil {
		err = i.staging.take(spec)
	}
	c.launch(i, func(ctx context.Context) {
		if err == nil {
			i.logf("Cell %s creating container for instance %s", i.cell.pods.Cell, i.guid)
			i.tellNames(spec)
		}
		if err == nil && packs {
			objects, err = i.pack(ctx, spec)
		}
		switch {
		case ctx.Err() != nil: // the next daemon starts it
		case i.stopped():
			i.finish(lrp.Exit{Stopped: true, Failed: i.isTask()})
		case err != nil:
			i.refuse(err)
		case i.create(ctx, objects):
			i.live(ctx)
		}
	})
}

// packs reports whether a container's root has to be made an image first.
func (c *Cell) packs(spec lrp.Container) bool {
	scheme, _ := reference.SplitScheme(spec.RootFS)
	return c.cfg.Pulls != nil && (scheme == reference.SchemePreloaded || len(spec.Layers) > 0 || kube.Stages(spec))
}

// render makes the objects of a container, whose root is an image if it was packed.
func (c *Cell) render(spec lrp.Container, packs bool, image kube.PackedImage) (kube.RenderedInstance, error) {
	o := c.options()
	if packs {
		o.Image = &image
	}
	if packs && kube.Stages(spec) {
		var err error
		if o.Stager, err = c.cfg.Pulls.stager(o.Cell, spec.GUID); err != nil {
			return kube.RenderedInstance{}, err
		}
	}
	return kube.Instance(spec, o)
}

// options are those of pods that are made now.
func (c *Cell) options() kube.InstanceOptions {
	o := c.pods
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.nodes {
		if r.Pods > 0 && !r.UserNamespaces {
			o.UserNamespaces = false
			break
		}
		o.UserNamespaces = o.UserNamespaces || r.Pods > 0
	}
	return o
}

// launch lets live run as the one goroutine of i.
func (c *Cell) launch(i *instance, live func(context.Context)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx == nil || c.ctx.Err() != nil || c.instances[i.guid] != nil {
		return
	}
	ctx := c.ctx
	c.instances[i.guid] = i
	c.agent.wakeUp()
	c.running.Go(fault.Func("podcell", func() {
		if err := fault.Guard("podcell", func() error { live(ctx); return nil }); err != nil {
			i.clear(ctx)
			i.refuse(err)
		}
	}))
}

// inBackground runs f in a goroutine; ctx ends with Run.
func (c *Cell) inBackground(f func(ctx context.Context)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ctx := c.ctx; ctx != nil && ctx.Err() == nil {
		c.running.Go(fault.Func("podcell", func() { f(ctx) }))
	}
}

// locate notes the address of an instance.
func (c *Cell) locate(i *instance, ip string) {
	if ip == "" {
		return
	}
	if at, _ := c.places.Load(ip); at != i.guid { // most changes of a pod leave its address as it is
		c.places.Store(ip, i.guid)
	}
}

// Stop ends a container. It returns at once. An unknown GUID is ignored.
func (c *Cell) Stop(guid string) {
	if i := c.instance(guid); i != nil {
		i.requestStop()
	}
}

func (c *Cell) instance(guid string) *instance {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.instances[guid]
}

// current are the instances that are not over.
func (c *Cell) current() (all []*instance) {
	c.mu.Lock()
	list := slices.Collect(maps.Values(c.instances))
	c.mu.Unlock()
	for _, i := range list {
		if !i.isOver() {
			all = append(all, i)
		}
	}
	return all
}

// Containers lists the cell's containers by GUID.
func (c *Cell) Containers() []lrp.ContainerStatus {
	list := []lrp.ContainerStatus{}
	for _, i := range c.current() {
		list = append(list, i.status())
	}
	slices.SortFunc(list, func(a, b lrp.ContainerStatus) int { return cmp.Compare(a.GUID, b.GUID) })
	return list
}

// errNotRunning is of a GUID that the cell does not have.
var errNotRunning = errors.New("there is no such container")

// changeTime bounds a change of an object.
const changeTime = 10 * time.Second

// SetFiles replaces the files of a container, which sees them when its node looks again: within
// a minute or two.
func (c *Cell) SetFiles(guid string, files []lrp.File) error {
	i := c.instance(guid)
	if i == nil || i.isOver() {
		return errNotRunning
	}
	return i.change(func(ctx context.Context, r *kube.Record) error {
		patch, err := kube.FilesPatch(*r, files)
		if err != nil {
			return err
		}
		r.FilesDigest = lrp.FilesDigest(files)
		return c.cfg.Cluster.Change(ctx, "Secret", kube.FilesSecret(guid), patch)
	})
}

// SetLogTags replaces the tags of a container's lines.
func (c *Cell) SetLogTags(guid string, tags map[string]string) error {
	i := c.instance(guid)
	if i == nil || i.isOver() {
		return errNotRunning
	}
	return i.change(func(_ context.Context, r *kube.Record) error {
		r.Container.Log.Tags = tags
		return nil
	})
}

// LogTags are the tags of a container's measurements; nil where there is no such container.
func (c *Cell) LogTags(guid string) map[string]string {
	if i := c.instance(guid); i != nil && !i.isOver() {
		return i.logTarget("").Tags
	}
	return nil
}

// Has reports whether a container is on the cell.
func (c *Cell) Has(guid string) bool {
	i := c.instance(guid)
	return i != nil && !i.isOver()
}
