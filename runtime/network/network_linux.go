package network

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"cupola/runtime/fault"
)

// poolSize is how many namespaces wait for a container. Each holds some 350 KiB
// of kernel memory and spares a start some two milliseconds.
const poolSize = 4

// Network attaches containers. Its methods may be called at the same time.
type Network struct {
	cfg    Config
	wires  *wiring
	filter *firewall
	log    *slog.Logger
	refill chan struct{}
	stop   context.CancelFunc
	work   sync.WaitGroup // the Network's own goroutines

	forwards atomic.Bool // a policy needs IP forwarding
	ask      time.Time   // when firewalld may be asked next to accept the subnet
	refused  error       // why firewalld did not when it was asked last

	mu      sync.Mutex
	slots   map[string]slot // by container; those of a pod have the same
	used    map[int]bool    // by index, ready ones too
	leaving map[int]bool    // by index: being given up
	ready   []slot
	next    int
}

// New readies the nftables table and adopts the namespaces of containers that
// a former Network attached; what it had made ahead or left half-made goes. It
// is safe to repeat.
func New(cfg Config) (*Network, error) {
	cfg = cfg.withDefaults()
	if err := checkConfig(cfg); err != nil {
		return nil, err
	}
	for _, dir := range []string{cfg.Dir, filepath.Join(cfg.Dir, "ns"), filepath.Join(cfg.Dir, "ids")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
	}
	if cfg.Resolvers == nil {
		cfg.Resolvers = hostResolvers()
	}
	n := &Network{
		cfg: cfg, log: cfg.Log, slots: map[string]slot{}, used: map[int]bool{}, leaving: map[int]bool{},
		refill: make(chan struct{}, 1),
	}
	if err := n.adopt(); err != nil {
		return nil, err
	}
	var err error
	if n.filter, err = newFirewall(cfg); err != nil {
		return nil, err
	}
	if n.wires, err = newWiring(cfg.LinkPrefix, cfg.Subnet.Addr().Next()); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	n.stop = cancel
	for _, run := range []func(context.Context){n.fill, n.watch} {
		loop := fault.Loop(ctx, "network", func(ctx context.Context) error { run(ctx); return nil })
		n.work.Go(fault.Func("network", func() { _ = loop() }))
	}
	n.wake()
	return n, nil
}

func checkConfig(cfg Config) error {
	if !cfg.Subnet.Addr().Is4() || cfg.Subnet.Bits() > 29 {
		return fmt.Errorf("subnet %s of containers is not an IPv4 block of at least 8 addresses", cfg.Subnet)
	}
	if len(cfg.LinkPrefix) > 9 {
		return fmt.Errorf("link prefix %q has more than 9 characters", cfg.LinkPrefix)
	}
	return nil
}

// adopt finds the slots on disk. A link of a slot without a container may not
// be whole, so it is made again.
func (n *Network) adopt() error {
	ids, err := os.ReadDir(filepath.Join(n.cfg.Dir, "ids"))
	if err != nil {
		return err
	}
	for _, entry := range ids {
		path := n.idPath(entry.Name())
		target, err := os.Readlink(path)
		index, err2 := strconv.Atoi(target)
		s := n.slot(index)
		if err != nil || err2 != nil || !pinned(s.file) {
			if err := os.Remove(path); err != nil {
				return err
			}
			continue
		}
		n.slots[entry.Name()] = s
		n.used[index] = true
		n.next = max(n.next, index+1)
	}
	return n.dropStray()
}

func (n *Network) dropStray() error {
	files, err := os.ReadDir(filepath.Join(n.cfg.Dir, "ns"))
	if err != nil {
		return err
	}
	for _, f := range files {
		index, err := strconv.Atoi(f.Name())
		if err == nil && n.used[index] {
			continue
		}
		if err == nil {
			n.next = max(n.next, index+1)
		}
		if err := unpin(filepath.Join(n.cfg.Dir, "ns", f.Name())); err != nil {
			return err
		}
	}
	return nil
}

func (n *Network) idPath(id string) string { return filepath.Join(n.cfg.Dir, "ids", id) }

// slot describes the slot with an index: everything about it follows from that.
func (n *Network) slot(index int) slot {
	base := n.cfg.Subnet.Addr().As4()
	v := uint32(base[0])<<24 | uint32(base[1])<<16 | uint32(base[2])<<8 | uint32(base[3])
	v += uint32(index) + 2 // the network's own address and the gateway's come first
	return slot{
		index:   index,
		file:    filepath.Join(n.cfg.Dir, "ns", strconv.Itoa(index)),
		link:    linkName(n.cfg.LinkPrefix, index),
		address: netip.AddrFrom4([4]byte{byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v)}),
	}
}

// capacity is the number of slots: the subnet without the network's, the
// gateway's and the broadcast address.
func (n *Network) capacity() int { return 1<<(32-n.cfg.Subnet.Bits()) - 3 }

// Acquire gives the container id a namespace, the same one if it has one.
func (n *Network) Acquire(ctx context.Context, id string) (Attachment, error) {
	if err := checkID(id); err != nil {
		return Attachment{}, err
	}
	if err := ctx.Err(); err != nil {
		return Attachment{}, err
	}
	n.mu.Lock()
	s, held := n.slots[id]
	n.mu.Unlock()
	if held {
		return n.attachment(s), nil
	}
	s, err := n.acquireSlot()
	if err != nil {
		return Attachment{}, fmt.Errorf("attach container %s: %w", id, err)
	}
	n.wake()
	return n.assign(id, s)
}

func checkID(id string) error {
	if id == "" || strings.ContainsAny(id, "/\x00") || id == "." || id == ".." {
		return fmt.Errorf("attach container %q: bad ID", id)
	}
	return nil
}

// Share gives the container id the namespace that the container with has, which
// lasts until both are released. The error wraps os.ErrNotExist where with has
// none, or is just giving it up.
func (n *Network) Share(ctx context.Context, id, with string) (Attachment, error) {
	if err := checkID(id); err != nil {
		return Attachment{}, err
	}
	if err := ctx.Err(); err != nil {
		return Attachment{}, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	s, ok := n.slots[with]
	if !ok || n.leaving[s.index] {
		return Attachment{}, fmt.Errorf("container %s has no network to share: %w", with, os.ErrNotExist)
	}
	if _, held := n.slots[id]; held {
		return Attachment{}, fmt.Errorf("container %s has a network: %w", id, os.ErrExist)
	}
	if err := os.Symlink(strconv.Itoa(s.index), n.idPath(id)); err != nil {
		return Attachment{}, err
	}
	n.slots[id] = s
	return n.attachment(s), nil
}

// assign makes s the container's for good: the symbolic link is what adopt reads.
func (n *Network) assign(id string, s slot) (Attachment, error) {
	if err := os.Symlink(strconv.Itoa(s.index), n.idPath(id)); err != nil {
		return Attachment{}, errors.Join(err, n.drop(s))
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.slots[id] = s
	return n.attachment(s), nil
}

func (n *Network) attachment(s slot) Attachment {
	return Attachment{NetNS: s.file, Address: s.address, Gateway: n.cfg.Subnet.Addr().Next(), HostLink: s.link}
}

// acquireSlot returns a slot that was made ahead, or makes one.
func (n *Network) acquireSlot() (slot, error) {
	n.mu.Lock()
	if len(n.ready) > 0 {
		s := n.ready[0]
		n.ready = n.ready[1:]
		n.mu.Unlock()
		return s, nil
	}
	n.mu.Unlock()
	return n.create()
}

// create makes a slot. The kernel takes a dropped namespace down in its own
// time, so a free slot's link may still be there: then the next one is tried. So
// it is where the kernel had no room for its answer.
func (n *Network) create() (slot, error) {
	const tries = 64
	for range tries {
		s, err := n.reserve()
		if err != nil {
			return slot{}, err
		}
		err = n.wires.build(s)
		if err == nil {
			return s, nil
		}
		err = errors.Join(err, n.drop(s))
		if !errors.Is(err, unix.EEXIST) && !errors.Is(err, unix.ENOBUFS) {
			return slot{}, err
		}
	}
	return slot{}, fmt.Errorf("links %s0 and on are all in use", n.cfg.LinkPrefix)
}

// reserve picks a free index after the last one given, so that an address is
// not soon used again.
func (n *Network) reserve() (slot, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for range n.capacity() {
		index := n.next % n.capacity()
		n.next = index + 1
		if !n.used[index] {
			n.used[index] = true
			return n.slot(index), nil
		}
	}
	return slot{}, fmt.Errorf("subnet %s has no free address", n.cfg.Subnet)
}

// drop gives up a slot.
func (n *Network) drop(s slot) error {
	err := unpin(s.file)
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.used, s.index)
	return err
}

// Release drops the container's namespace and rules, unless another container
// shares them. A container that has none is not an error.
func (n *Network) Release(_ context.Context, id string) error {
	s, ok := n.part(id)
	if !ok {
		return n.unlink(id)
	}
	if err := n.filter.forget(s.address); err != nil {
		return err
	}
	if err := n.unlink(id); err != nil { // what no link leads to is stray
		return err
	}
	if err := unpin(s.file); err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.slots, id)
	delete(n.used, s.index)
	delete(n.leaving, s.index)
	return nil
}

// part takes the container out of those that share its slot, and reports
// whether it was the last: then the slot is still its, and no one else's any
// more.
func (n *Network) part(id string) (s slot, last bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	s, ok := n.slots[id]
	if !ok {
		return s, false
	}
	for other, has := range n.slots {
		if other != id && has.index == s.index {
			delete(n.slots, id)
			return s, false
		}
	}
	n.leaving[s.index] = true
	return s, true
}

func (n *Network) unlink(id string) error {
	if err := os.Remove(n.idPath(id)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// Set makes policies the egress of all containers. One without a policy
// reaches nothing. The first policy that allows anything turns on IP forwarding
// of the host.
func (n *Network) Set(ctx context.Context, policies []Policy) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if slices.ContainsFunc(policies, func(p Policy) bool { return len(p.Egress) > 0 }) {
		if err := n.forward(); err != nil {
			return err
		}
		n.forwards.Store(true)
	}
	return n.filter.set(policies)
}

// List names the containers that have a namespace.
func (n *Network) List() ([]string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Sorted(maps.Keys(n.slots)), nil
}

// Resolvers are the name servers for containers' resolv.conf.
func (n *Network) Resolvers() []netip.Addr { return slices.Clone(n.cfg.Resolvers) }

func (n *Network) wake() {
	select {
	case n.refill <- struct{}{}:
	default:
	}
}

// fill keeps the pool full. It logs a failure once; Acquire retries.
func (n *Network) fill(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-n.refill:
		}
		for ctx.Err() == nil && n.missing() {
			s, err := n.create()
			if err != nil {
				n.log.Warn("network namespace could not be made ahead", "err", err)
				break
			}
			n.mu.Lock()
			n.ready = append(n.ready, s)
			n.mu.Unlock()
		}
	}
}

func (n *Network) missing() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.ready) < poolSize && len(n.used) < n.capacity()
}

// Close ends the Network's own work. Containers' namespaces and rules stay.
func (n *Network) Close() error {
	n.stop()
	n.work.Wait()
	n.mu.Lock()
	ready := n.ready
	n.ready = nil
	n.mu.Unlock()
	var errs []error
	for _, s := range ready {
		errs = append(errs, n.drop(s))
	}
	return errors.Join(append(errs, n.filter.close())...)
}

// Teardown closes the Network and removes everything it created: namespaces
// and links, the table, rules in others' and the host's address. IP forwarding stays on.
func (n *Network) Teardown(ctx context.Context) error {
	n.stop()
	n.work.Wait() // nothing is set again
	errs := []error{n.leaveFirewalld(ctx), n.filter.remove(), n.Close()}
	n.mu.Lock()
	defer n.mu.Unlock()
	clear(n.slots)
	clear(n.used)
	errs = append(errs, n.dropStray(), n.wires.cut(n.cfg.LinkPrefix), n.wires.dismantle(), os.RemoveAll(n.cfg.Dir))
	n.wires.host.Close()
	return errors.Join(errs...)
}
