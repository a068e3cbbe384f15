package cell

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"cupola/rootfs/image"
	"cupola/rootfs/reference"
	"cupola/rootfs/root"
	"cupola/rootfs/tree"
	"cupola/runtime/container"
	"cupola/runtime/lrp"
	"cupola/runtime/network"
	"cupola/runtime/users"
)

// machine is a daemon's hold on a host. It loses it when the daemon is killed.
type machine struct {
	measured int // calls of Stats
	*host
	daemon int // must be the host's
}

// host is a fake of all that outlives a daemon: processes, networks and mounts.
// Several daemons, one after the other, may have it.
type host struct {
	dir    string         // of the files in roots
	opened func(*os.File) // is called with each file of a root that is opened; nil: not
	blobs  string
	issuer Identities

	mu       sync.Mutex
	running  map[string]*fakeContainer
	networks map[string]netip.Addr
	roots    map[string]bool
	memories map[string]map[string][]byte
	users    map[string]users.Range // by GUID
	claims   uint32
	policies []network.Policy
	next     uint32
	calls    []string
	fail     map[string]error          // by the name of a call
	block    map[string]chan struct{}  // a call waits until it is closed, or its context ends
	stuck    map[string]chan struct{}  // a call waits until it is closed, whatever becomes of its context
	auto     map[string]container.Exit // processes that end at once, by their program
	specs    []container.Spec
	mounts   []root.Request

	daemon int    // that runs now
	killAt int    // the call at which it is killed; 0: none
	early  bool   // the call has no effect then
	onKill func() // called at that moment
}

var errKilled = errors.New("killed")

// errPanics as the error of a call has it panic.
var errPanics = errors.New("panics")

// fakeContainer catches SIGTERM if the test says so.
type fakeContainer struct {
	state    container.State
	exit     container.Exit
	ended    chan struct{}
	deaf     bool // ignores SIGTERM
	sidecars []*fakeProcess
	frozen   bool
	pending  *container.Exit // of a signal that came while it was frozen
}

func newMachine(t *testing.T) *machine {
	return &machine{host: &host{
		dir: t.TempDir(), blobs: t.TempDir(), running: map[string]*fakeContainer{}, networks: map[string]netip.Addr{},
		roots: map[string]bool{}, memories: map[string]map[string][]byte{}, users: map[string]users.Range{}, fail: map[string]error{}, block: map[string]chan struct{}{},
	}}
}

// successor gives the host to another daemon.
func (m *machine) successor() *machine {
	m.mu.Lock()
	defer m.mu.Unlock()
	return &machine{host: m.host, daemon: m.host.daemon}
}

// die kills the daemon in the middle of a call and reports whether the call
// has no effect any more.
func (m *machine) die() bool {
	if m.killAt == 0 || len(m.calls) != m.killAt {
		return m.daemon != m.host.daemon
	}
	m.onKill()
	m.host.daemon++
	return m.early
}

// call notes a call, and fails or blocks as told.
func (m *machine) call(ctx context.Context, name, id string) error {
	m.mu.Lock()
	m.calls = append(m.calls, name+" "+id)
	if m.die() {
		m.mu.Unlock()
		return errKilled
	}
	err, block, stuck := m.fail[name], m.block[name], m.stuck[name]
	m.mu.Unlock()
	if err == errPanics {
		panic("broken")
	}
	if stuck != nil {
		<-stuck
	}
	if block != nil {
		select {
		case <-block:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return err
}

func (m *machine) Start(ctx context.Context, s container.Spec) (container.State, error) {
	if err := m.call(ctx, "start", s.ID); err != nil {
		return container.State{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.running[s.ID] != nil {
		return container.State{}, errors.New("container exists")
	}
	m.next++
	c := &fakeContainer{
		state: container.State{ID: s.ID, PID: int(m.next), StartTicks: 1, Alive: true},
		ended: make(chan struct{}), deaf: slices.Contains(s.Process.Args, "deaf"),
	}
	m.running[s.ID] = c
	m.specs = append(m.specs, s)
	return c.state, nil
}

func (m *machine) Exec(ctx context.Context, id string, p container.Process, _ container.Stdio) (Process, error) {
	if err := m.call(ctx, "exec", id); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.running[id] == nil {
		return nil, errors.New("no such container")
	}
	m.next++
	x := &fakeProcess{pid: int(m.next), args: p.Args, ended: make(chan struct{})}
	m.running[id].sidecars = append(m.running[id].sidecars, x)
	if exit, ok := m.auto[strings.Join(p.Args, " ")]; ok {
		x.end(exit)
	}
	return x, nil
}

func (m *machine) Relay(context.Context, string, int, uint64, container.Process, *os.File) error {
	return errors.New("no relays")
}

func (m *machine) Found(id string, pid int, _ uint64) Process {
	m.mu.Lock()
	defer m.mu.Unlock()
	if c := m.running[id]; c != nil {
		for _, s := range c.sidecars {
			if s.pid == pid {
				return s
			}
		}
	}
	gone := &fakeProcess{ended: make(chan struct{})}
	gone.end(container.Exit{})
	return gone
}

// sidecar is a process of a container that is not its first.
func (m *machine) sidecar(id string, n int) *fakeProcess {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.running[id].sidecars[n]
}

// finish lets the process of a container end that runs a program.
func (m *machine) finish(t *testing.T, id, program string, exit container.Exit) {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	for n := range m.specs {
		if s := m.specs[n]; s.ID == id && len(s.Process.Args) > 0 && s.Process.Args[0] == program {
			m.running[id].end(exit)
			return
		}
	}
	for _, p := range m.running[id].sidecars {
		if p.args[0] == program {
			p.end(exit)
			return
		}
	}
	t.Fatalf("no process of %s runs %s", id, program)
}

// programs lists the programs that were started in a container, in order.
func (m *machine) programs(id string) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []string
	for _, s := range m.specs {
		if s.ID == id && len(s.Process.Args) == 0 {
			all = append(all, "idle")
		} else if s.ID == id {
			all = append(all, path.Base(s.Process.Args[len(s.Process.Args)-1]))
		}
	}
	for _, p := range m.running[id].sidecars {
		all = append(all, p.args[0])
	}
	return all
}

// end lets the main process of a container end, as a process would.
func (m *machine) end(id string, exit container.Exit) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.running[id].end(exit)
}

func (c *fakeContainer) end(exit container.Exit) {
	if !c.state.Alive {
		return
	}
	if c.frozen {
		c.pending = &exit
		return
	}
	for _, s := range c.sidecars {
		s.end(container.Exit{Code: 137, Signal: 9, Known: true})
	}
	c.state.Alive, c.exit = false, exit
	close(c.ended)
}

func (m *machine) Signal(id string, sig syscall.Signal) error {
	if err := m.call(context.Background(), "signal", fmt.Sprintf("%s %d", id, sig)); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.running[id]
	if c == nil {
		return errors.New("no such container")
	}
	if sig == syscall.SIGKILL || !c.deaf {
		c.end(container.Exit{Code: 128 + int(sig), Signal: int(sig), Known: true})
	}
	return nil
}

func (m *machine) Wait(ctx context.Context, id string) (container.Exit, error) {
	m.mu.Lock()
	c := m.running[id]
	m.mu.Unlock()
	if c == nil {
		return container.Exit{}, errors.New("no such container")
	}
	select {
	case <-c.ended:
		return c.exit, nil
	case <-ctx.Done():
		return container.Exit{}, context.Cause(ctx)
	}
}

func (m *machine) Stats(id string) (container.Stats, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.running[id] == nil {
		return container.Stats{}, errors.New("no such container")
	}
	m.measured++
	return container.Stats{CPU: time.Second, MemoryBytes: uint64(m.measured) << 20}, nil
}

func (m *machine) Starved(string) time.Duration { return 0 }

func (m *machine) Freeze(ctx context.Context, id string) error {
	if err := m.call(ctx, "freeze", id); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.running[id].frozen = true
	return nil
}

func (m *machine) Thaw(id string) error {
	if err := m.call(context.Background(), "thaw", id); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if c := m.running[id]; c != nil {
		c.thaw()
	}
	return nil
}

func (m *machine) Frozen(id string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.running[id] != nil && m.running[id].frozen
}

func (m *machine) Reclaim(id string) { _ = m.call(context.Background(), "reclaim", id) }

// thaw lets a container go on, and end if it was to.
func (c *fakeContainer) thaw() {
	c.frozen = false
	if c.pending != nil {
		c.end(*c.pending)
	}
}

func (m *machine) Remove(ctx context.Context, id string) error {
	if err := m.call(ctx, "remove", id); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if c := m.running[id]; c != nil {
		c.frozen = false
		c.end(container.Exit{Code: 137, Signal: 9, Known: true})
	}
	delete(m.running, id)
	return nil
}

func (m *machine) List() ([]container.State, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []container.State
	for _, c := range m.running {
		all = append(all, c.state)
	}
	return all, nil
}

// fakeProcess is a sidecar.
type fakeProcess struct {
	pid   int
	args  []string
	exit  container.Exit
	ended chan struct{}
	once  sync.Once
}

func (p *fakeProcess) ID() int       { return p.pid }
func (p *fakeProcess) Ticks() uint64 { return 1 }

func (p *fakeProcess) end(exit container.Exit) {
	p.once.Do(func() {
		p.exit = exit
		close(p.ended)
	})
}

func (p *fakeProcess) Signal(sig syscall.Signal) error {
	p.end(container.Exit{Code: 128 + int(sig), Signal: int(sig), Known: true})
	return nil
}

func (p *fakeProcess) Wait(ctx context.Context) (container.Exit, error) {
	select {
	case <-p.ended:
		return p.exit, nil
	case <-ctx.Done():
		return container.Exit{}, context.Cause(ctx)
	}
}

// fakeNetwork and fakeRoots are the machine's other faces.
type fakeNetwork struct{ *machine }

var fakeGateway = netip.MustParseAddr("10.200.0.0")

func (n fakeNetwork) Acquire(ctx context.Context, id string) (network.Attachment, error) {
	if err := n.call(ctx, "acquire", id); err != nil {
		return network.Attachment{}, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if address, ok := n.networks[id]; ok {
		return network.Attachment{NetNS: "/run/netns/" + address.String(), Address: address, Gateway: fakeGateway}, nil
	}
	n.next++
	address := netip.AddrFrom4([4]byte{10, 200, byte(n.next >> 8), byte(n.next)})
	n.networks[id] = address
	return network.Attachment{NetNS: "/run/netns/" + address.String(), Address: address, Gateway: fakeGateway}, nil
}

func (n fakeNetwork) Share(ctx context.Context, id, with string) (network.Attachment, error) {
	if err := n.call(ctx, "share", id); err != nil {
		return network.Attachment{}, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	address, ok := n.networks[with]
	if !ok {
		return network.Attachment{}, os.ErrNotExist
	}
	n.networks[id] = address
	return network.Attachment{NetNS: "/run/netns/" + address.String(), Address: address, Gateway: fakeGateway}, nil
}

func (n fakeNetwork) Release(ctx context.Context, id string) error {
	if err := n.call(ctx, "release", id); err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.networks, id)
	return nil
}

func (n fakeNetwork) Set(ctx context.Context, p []network.Policy) error {
	if err := n.call(ctx, "set", ""); err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.policies = p
	return nil
}

func (n fakeNetwork) List() ([]string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	var ids []string
	for id := range n.networks {
		ids = append(ids, id)
	}
	return ids, nil
}

func (fakeNetwork) Resolvers() []netip.Addr { return []netip.Addr{netip.MustParseAddr("9.9.9.9")} }

type fakeRoots struct{ *machine }

func (r fakeRoots) Mount(ctx context.Context, req root.Request) (root.Root, error) {
	if err := r.call(ctx, "mount", req.ID); err != nil {
		return root.Root{}, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.roots[req.ID] {
		return root.Root{}, errors.New("root is mounted")
	}
	r.roots[req.ID] = true
	r.machine.mounts = append(r.machine.mounts, req)
	dir := filepath.Join(r.dir, req.ID)
	return root.Root{Path: dir, Layers: make([]string, len(req.Layers))}, os.MkdirAll(dir, 0o700)
}

func (r fakeRoots) Unmount(ctx context.Context, id string) error {
	if err := r.call(ctx, "unmount", id); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.roots, id)
	return os.RemoveAll(filepath.Join(r.dir, id))
}

func (r fakeRoots) List() ([]string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var ids []string
	for id := range r.roots {
		ids = append(ids, id)
	}
	return ids, nil
}

func (r fakeRoots) ExtractLayer(ctx context.Context, id, archive, dest string, o tree.Owner) error {
	return r.Extract(ctx, id, archive, dest, o)
}

func (r fakeRoots) Extract(ctx context.Context, id, archive, dest string, _ tree.Owner) error {
	if err := r.call(ctx, "extract", id); err != nil {
		return err
	}
	return r.put(id, filepath.Join(dest, filepath.Base(archive)), nil)
}

func (r fakeRoots) WriteFile(id, path string, content []byte, _ os.FileMode, _, _ uint32) error {
	if err := r.call(context.Background(), "write", id); err != nil {
		return err
	}
	return r.put(id, path, content)
}

func (r fakeRoots) put(id, path string, content []byte) error {
	path = filepath.Join(r.dir, id, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return os.WriteFile(path, content, 0o600)
}

func (r fakeRoots) Open(id, path string) (*os.File, error) {
	f, err := os.Open(filepath.Join(r.dir, id, path))
	if err == nil && r.opened != nil {
		r.opened(f)
	}
	return f, err
}

func (r fakeRoots) Find(id, path string) (*os.File, error) { return r.Open(id, path) }

func (r fakeRoots) Pull(ctx context.Context, ref reference.Reference, o image.PullOptions) (image.Image, error) {
	if err := r.call(ctx, "pull", ref.String()+" as "+o.Username); err != nil {
		return image.Image{}, err
	}
	return image.Image{Digest: "sha256:" + strings.Repeat("0", 64)}, nil
}

func (r fakeRoots) DiskUsage(string) (int64, error) { return 4096, nil }

type fakeUsers struct{ *machine }

func (f fakeUsers) Claim(owner string) (users.Range, error) {
	if _, err := os.Stat(owner); err != nil {
		return users.Range{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.claims++
	r := users.Range{Base: f.claims * users.Size, Size: users.Size}
	f.users[filepath.Base(owner)] = r
	return r, nil
}

// Release has to come when nothing of the container is left.
func (f fakeUsers) Release(owner string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	id := filepath.Base(owner)
	if _, err := os.Stat(owner); err == nil || f.running[id] != nil || f.roots[id] || f.memories[id] != nil {
		return fmt.Errorf("users of %s are freed, of which something is left", id)
	}
	delete(f.users, id)
	return nil
}

type fakeFiles struct{ *machine }

func (f fakeFiles) Create(id string, _ uint32, _ bool) error {
	if err := f.call(context.Background(), "create", id); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.memories[id] != nil {
		return errors.New("memory exists")
	}
	f.memories[id] = map[string][]byte{}
	return nil
}

func (f fakeFiles) Remove(id string) error {
	if err := f.call(context.Background(), "forget", id); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.memories, id)
	return nil
}

func (f fakeFiles) List() ([]string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Collect(maps.Keys(f.memories)), nil
}

func (f fakeFiles) Keep(id, name string, content []byte) error {
	return f.Replace(id, "own", 0, []lrp.File{{Path: name, Content: content}})
}

func (f fakeFiles) Kept(id, name string) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	content, ok := f.memories[id]["own/"+name]
	if !ok {
		return nil, os.ErrNotExist
	}
	return content, nil
}

func (f fakeFiles) Replace(id, tree string, _ uint32, files []lrp.File) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.memories[id] == nil {
		return os.ErrNotExist
	}
	maps.DeleteFunc(f.memories[id], func(name string, _ []byte) bool { return strings.HasPrefix(name, tree+"/") })
	for _, file := range files {
		f.memories[id][tree+"/"+file.Path] = file.Content
	}
	return nil
}

func (f fakeFiles) Read(id, tree, name string) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	content, ok := f.memories[id][tree+"/"+name]
	if !ok {
		return nil, os.ErrNotExist
	}
	return content, nil
}

func (f fakeFiles) Path(id, tree string) string { return "/memory/" + id + "/" + tree }

func (fakeFiles) Used(string) (int64, error) { return 4096, nil }

// fakeOutput is output without a writer. A real one waits in the kernel,
// which would stop the clock of synctest.
type fakeOutput struct{ drained, closed bool }

func (*fakeOutput) Start()   {}
func (o *fakeOutput) Drain() { o.drained = true }
func (o *fakeOutput) Close() { o.closed = true }
