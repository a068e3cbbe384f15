package network

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// mapName is the map from a container's address to the chain of its rules.
const mapName = "containers"

// chainPrefix is the prefix of every chain of rules; the rest is their digest,
// so that a later daemon knows the kernel's rules by the name.
const chainPrefix = "egress-"

// unread stands for the chain of an element that was already in the kernel:
// the module cannot read verdicts. It is not a chain's name, so the next set
// replaces the element.
const unread = "?"

// firewall is the nftables table: static chains, the map, and one chain for
// each distinct list of rules.
type firewall struct {
	table  *nftables.Table
	links  string
	subnet netip.Prefix
	router router
	names  bool // the host's address answers names

	answerTime time.Duration

	mu     sync.Mutex
	conn   *nftables.Conn
	socket socket // conn's
	buffer int    // bytes that fit into each direction of conn
	stale  bool   // a change failed: conn may hold a part of it, and the kernel all of it
	vmap   *nftables.Set
	chains map[string]bool       // in the kernel
	chosen map[netip.Addr]string // the map's elements
	want   map[netip.Addr]string // desired elements of the map, nil until they are set
	rules  map[string][]Rule     // those of the chains that they are to lead to
}

// newFirewall replaces the static part in one transaction. Rules of existing
// containers stay in force meanwhile.
func newFirewall(cfg Config) (*firewall, error) {
	f := &firewall{
		table: &nftables.Table{Name: cfg.Table, Family: nftables.TableFamilyIPv4},
		links: cfg.LinkPrefix, subnet: cfg.Subnet, router: newRouter(cfg.Router), names: cfg.Names, buffer: netlinkBuffer, answerTime: answerTime,
	}
	if err := f.connect(); err != nil {
		return nil, err
	}
	if err := f.read(); err != nil {
		return nil, explain(err)
	}
	f.static()
	if err := f.conn.Flush(); err != nil {
		return nil, explain(err)
	}
	return f, nil
}

// explain adds the fix for a kernel without nftables.
func explain(err error) error {
	for _, missing := range []error{unix.EPROTONOSUPPORT, unix.EOPNOTSUPP, unix.ENOENT, unix.EAFNOSUPPORT, unix.EINVAL} {
		if errors.Is(err, missing) {
			return fmt.Errorf("set up nftables: %w (load its modules: modprobe -a nf_tables nft_ct nft_fib_ipv4 nft_reject_ipv4 nft_masq nft_chain_nat)", err)
		}
	}
	return fmt.Errorf("set up nftables: %w", err)
}

// connect replaces the connection.
func (f *firewall) connect() error {
	if f.conn != nil {
		_ = f.conn.CloseLasting()
	}
	prepare := func(s socket) error {
		f.socket = s
		f.limit()
		return errors.Join(s.SetReadBuffer(f.buffer), s.SetWriteBuffer(f.buffer))
	}
	conn, err := nftables.New(nftables.AsLasting(), withSocket(nftables.WithSockOptions, prepare))
	if err != nil {
		return explain(err)
	}
	f.conn = conn
	return nil
}

// socket is what is set of a netlink socket.
type socket interface {
	SetDeadline(time.Time) error
	SetReadBuffer(bytes int) error
	SetWriteBuffer(bytes int) error
}

// withSocket makes the option that prepares a connection's socket. The socket's type is
// of a module that nothing else here needs, so it is inferred.
func withSocket[Option ~func(Conn) error, Conn socket](option func(...Option) nftables.ConnOption, prepare func(socket) error) nftables.ConnOption {
	return option(func(c Conn) error { return prepare(c) })
}

// answerTime is how long the kernel has for a change or a read of all. It takes
// milliseconds; an answer that is lost must not hold up every container for ever.
const answerTime = 10 * time.Second

// limit lets the kernel's next answers come for so long. A socket that takes no limit
// is closed, and fails when it is used.
func (f *firewall) limit() { _ = f.socket.SetDeadline(time.Now().Add(f.answerTime)) }

// Of a netlink socket's buffers, in bytes. The kernel's default holds the
// answers to some 250 messages, and each rule is one.
const (
	netlinkBuffer    = 1 << 20
	netlinkBufferMax = 64 << 20
	netlinkGrowth    = 8
)

// overflowed reports whether messages, or the kernel's answers to them, did not
// fit into a socket's buffers. In the latter case they have taken effect.
func overflowed(err error) bool {
	return errors.Is(err, unix.ENOBUFS) || errors.Is(err, unix.EMSGSIZE)
}

// retry makes a change. After one that failed it reads first what the kernel has,
// which takes a batch whole or not at all. It repeats one that overflowed, as long
// as it can make the buffers larger.
func (f *firewall) retry(change func() error) error {
	for {
		err := f.renew()
		if err == nil {
			f.limit()
			err = change()
		}
		if err == nil {
			return nil
		}
		f.stale = true
		before := f.buffer
		if overflowed(err) {
			f.buffer = min(f.buffer*netlinkGrowth, netlinkBufferMax)
		}
		if f.buffer == before {
			return err
		}
	}
}

// renew connects and reads again, after a change that failed.
func (f *firewall) renew() error {
	if !f.stale {
		return nil
	}
	if err := f.connect(); err != nil {
		return err
	}
	if err := f.read(); err != nil {
		return err
	}
	f.stale = false
	return nil
}

// read learns which chains and elements are in the kernel.
func (f *firewall) read() error {
	f.chains, f.chosen, f.vmap = map[string]bool{}, map[netip.Addr]string{}, nil
	chains, err := f.conn.ListChainsOfTableFamily(f.table.Family)
	if err != nil {
		return fmt.Errorf("list chains: %w", err)
	}
	for _, c := range chains {
		if c.Table.Name == f.table.Name && strings.HasPrefix(c.Name, chainPrefix) {
			f.chains[c.Name] = true
		}
	}
	f.vmap = &nftables.Set{
		Table: f.table, Name: mapName, IsMap: true, KeyType: nftables.TypeIPAddr, DataType: nftables.TypeVerdict,
	}
	tables, err := f.conn.ListTablesOfFamily(f.table.Family)
	if err != nil {
		return fmt.Errorf("list tables: %w", err)
	}
	if !slices.ContainsFunc(tables, func(t *nftables.Table) bool { return t.Name == f.table.Name }) {
		return nil
	}
	elements, err := f.conn.GetSetElements(f.vmap)
	if err != nil {
		return fmt.Errorf("list containers' rules: %w", err)
	}
	for _, e := range elements {
		if addr, ok := netip.AddrFromSlice(e.Key); ok {
			f.chosen[addr] = unread
		}
	}
	return nil
}

// static is everything but the containers' own rules.
func (f *firewall) static() {
	f.conn.AddTable(f.table)
	// An error can only be of encoding, and shows at the flush.
	_ = f.conn.AddSet(f.vmap, nil)
	for _, c := range f.staticChains() {
		chain := f.conn.AddChain(c.chain)
		f.conn.FlushChain(chain)
		for _, exprs := range c.rules {
			f.conn.AddRule(&nftables.Rule{Table: f.table, Chain: chain, Exprs: exprs})
		}
	}
}

type staticChain struct {
	chain *nftables.Chain
	rules [][]expr.Any
}

func (f *firewall) staticChains() []staticChain {
	base := func(name string, kind nftables.ChainType, hook *nftables.ChainHook, priority *nftables.ChainPriority) *nftables.Chain {
		return &nftables.Chain{Name: name, Table: f.table, Type: kind, Hooknum: hook, Priority: priority}
	}
	filter := nftables.ChainTypeFilter
	decide := [][]expr.Any{
		slices.Concat(f.from(), answers(), accept()),
		slices.Concat(f.from(), f.lookUp()),
	}
	for _, no := range refuse() {
		decide = append(decide, slices.Concat(f.from(), no))
	}
	toHost, fromHost := decide, [][]expr.Any(nil)
	if f.names {
		toHost = slices.Concat(decide[:1], f.asksNames(), decide[1:])
		fromHost = [][]expr.Any{f.dropQueries()}
	}
	fromHost = append(fromHost, f.dropResets()...)
	return []staticChain{
		// A container may send from its own address only.
		{base("antispoof", filter, nftables.ChainHookPrerouting, nftables.ChainPriorityRaw), [][]expr.Any{
			slices.Concat(f.from(), foreignSource(), drop()),
		}},
		{base("tohost", filter, nftables.ChainHookInput, nftables.ChainPriorityFilter), toHost},
		{base("fromhost", filter, nftables.ChainHookOutput, nftables.ChainPriorityFilter), fromHost},
		{base("forward", filter, nftables.ChainHookForward, nftables.ChainPriorityFilter), append(slices.Clone(decide),
			slices.Concat(f.to(), answers(), accept()),
			slices.Concat(f.to(), drop()),
		)},
		{base("masquerade", nftables.ChainTypeNAT, nftables.ChainHookPostrouting, nftables.ChainPriorityNATSource), [][]expr.Any{
			slices.Concat(sourceIn(f.subnet), f.notTo(), []expr.Any{&expr.Masq{}}),
		}},
	}
}

// set makes policies the elements of the map, in one transaction.
func (f *firewall) set(policies []Policy) error {
	want, rules, err := f.compile(policies)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.want, f.rules = want, rules
	return f.retry(func() error { return f.change(want, rules) })
}

// restore sets the table again if another program deleted it, as one does that
// loads its own rules in place of all others. It reports whether that was so.
func (f *firewall) restore() (restored bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	err = f.retry(func() error {
		whole, err := f.whole()
		if err != nil || whole {
			return err
		}
		restored = true
		return f.again()
	})
	return restored, err
}

// whole reports whether the kernel has the table with all its chains.
func (f *firewall) whole() (bool, error) {
	there, err := f.conn.ListChainsOfTableFamily(f.table.Family)
	if err != nil {
		return false, fmt.Errorf("list chains: %w", err)
	}
	missing := maps.Clone(f.chains)
	for _, c := range f.staticChains() {
		missing[c.chain.Name] = true
	}
	for _, c := range there {
		if c.Table.Name == f.table.Name {
			delete(missing, c.Name)
		}
	}
	return len(missing) == 0, nil
}

// again sets the whole table, as it should be.
func (f *firewall) again() error {
	if err := f.read(); err != nil {
		return err
	}
	f.static()
	if err := f.conn.Flush(); err != nil || f.want == nil {
		return err
	}
	return f.change(f.want, f.rules)
}

// change makes want the elements of the map, and rules the chains.
func (f *firewall) change(want map[netip.Addr]string, rules map[string][]Rule) error {
	for name, list := range rules {
		if !f.chains[name] {
			if err := f.addChain(name, list); err != nil {
				return err
			}
		}
	}
	var gone, fresh []nftables.SetElement
	for addr, name := range f.chosen {
		if want[addr] != name {
			gone = append(gone, nftables.SetElement{Key: addr.AsSlice()})
		}
	}
	for addr, name := range want {
		if f.chosen[addr] != name {
			fresh = append(fresh, nftables.SetElement{Key: addr.AsSlice(), VerdictData: &expr.Verdict{Kind: expr.VerdictJump, Chain: name}})
		}
	}
	return f.apply(gone, fresh, want, rules)
}

func (f *firewall) apply(gone, fresh []nftables.SetElement, want map[netip.Addr]string, rules map[string][]Rule) error {
	if len(gone) > 0 {
		if err := f.conn.SetDeleteElements(f.vmap, gone); err != nil {
			return err
		}
	}
	if len(fresh) > 0 {
		if err := f.conn.SetAddElements(f.vmap, fresh); err != nil {
			return err
		}
	}
	for name := range f.chains {
		if _, needed := rules[name]; !needed {
			chain := &nftables.Chain{Name: name, Table: f.table}
			f.conn.FlushChain(chain)
			f.conn.DelChain(chain)
		}
	}
	if err := f.conn.Flush(); err != nil {
		return fmt.Errorf("set egress rules: %w", err)
	}
	f.chosen, f.chains = maps.Clone(want), map[string]bool{} // forget deletes from either
	for name := range rules {
		f.chains[name] = true
	}
	return nil
}

// forget takes a container's rules away. The chain stays for the next set.
func (f *firewall) forget(addr netip.Addr) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.want, addr)
	return f.retry(func() error { return f.deleteElement(addr) })
}

func (f *firewall) deleteElement(addr netip.Addr) error {
	if _, ok := f.chosen[addr]; !ok {
		return nil
	}
	if err := f.conn.SetDeleteElements(f.vmap, []nftables.SetElement{{Key: addr.AsSlice()}}); err != nil {
		return err
	}
	if err := f.conn.Flush(); err != nil {
		return fmt.Errorf("remove egress rules of %s: %w", addr, err)
	}
	delete(f.chosen, addr)
	return nil
}

// remove deletes the table, and the rules in tables of others.
func (f *firewall) remove() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stale { // conn may hold a part of a change
		if err := f.connect(); err != nil {
			return err
		}
	}
	if err := f.withdraw(); err != nil {
		return err
	}
	f.conn.DelTable(f.table)
	if err := f.conn.Flush(); err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("delete nftables table %s: %w", f.table.Name, err)
	}
	return nil
}

func (f *firewall) close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.conn.CloseLasting()
}
