package network

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// slot is one namespace with its link, made ahead or in use.
type slot struct {
	index   int
	file    string // the pinned namespace
	link    string // the host's end
	address netip.Addr
}

// All links have the same hardware addresses: a link has only two ends, and
// each has the other's address as a permanent neighbour.
var (
	hostMAC      = net.HardwareAddr{0x02, 'c', 'u', 'p', 0, 1}
	containerMAC = net.HardwareAddr{0x02, 'c', 'u', 'p', 0, 2}
)

// build makes the namespace of s, pins it and joins it to the host.
func (w *wiring) build(s slot) error {
	h, err := newNamespace(s.file)
	if err != nil {
		return err
	}
	defer h.Close()
	veth, err := w.link(h, s)
	if err != nil {
		return err
	}
	if err := w.outside(s); err != nil {
		return err
	}
	if err := w.inside(h, s, veth); err != nil {
		return err
	}
	// The kernel lets the end that was up first send only when a worker has seen
	// its carrier, or when the link is asked for (since Linux 6.8).
	_, err = w.host.LinkByName(s.link)
	return err
}

// newNamespace makes a network namespace, pins it at file and returns a netlink
// socket in it.
func newNamespace(file string) (h *netlink.Handle, err error) {
	err = elsewhere(func() (err error) {
		h, err = furnish(file)
		return err
	})
	return h, err
}

func furnish(file string) (*netlink.Handle, error) {
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		return nil, err
	}
	if err := unix.Mount("/proc/thread-self/ns/net", file, "", unix.MS_BIND, ""); err != nil {
		return nil, fmt.Errorf("pin network namespace at %s: %w", file, err)
	}
	for _, c := range namespaceSettings() {
		if err := c.write(); err != nil {
			return nil, err
		}
	}
	h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("open netlink: %w", err)
	}
	return h, nil
}

// link makes both ends at once, each where it belongs: moving one into the
// namespace afterwards would cost an RCU grace period. The host's namespace is that of the
// process's first thread, which inNamespace leaves there.
func (w *wiring) link(h *netlink.Handle, s slot) (*netlink.Veth, error) {
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.HardwareAddr, attrs.MTU, attrs.TxQLen = "eth0", containerMAC, w.mtu, -1
	veth := &netlink.Veth{
		LinkAttrs: attrs, PeerName: s.link, PeerHardwareAddr: hostMAC,
		PeerNamespace: netlink.NsPid(os.Getpid()), PeerTxQLen: -1,
	}
	if err := h.LinkAdd(veth); err != nil {
		return nil, fmt.Errorf("make link %s: %w", s.link, err)
	}
	return veth, nil
}

// inside readies the container's end.
func (w *wiring) inside(h *netlink.Handle, s slot, veth *netlink.Veth) error {
	for _, link := range []netlink.Link{loopback(), veth} {
		if err := h.LinkSetUp(link); err != nil {
			return fmt.Errorf("set %s up: %w", link.Attrs().Name, err)
		}
	}
	if err := h.AddrAdd(veth, &netlink.Addr{IPNet: hostNet(s.address)}); err != nil {
		return fmt.Errorf("set address %s: %w", s.address, err)
	}
	route := &netlink.Route{LinkIndex: veth.Index, Gw: w.gateway.AsSlice(), Flags: int(netlink.FLAG_ONLINK)}
	if err := h.RouteAdd(route); err != nil {
		return fmt.Errorf("set default route: %w", err)
	}
	return addNeighbour(h, veth.Index, w.gateway, hostMAC)
}

// outside readies the host's end, once more where it had been.
func (w *wiring) outside(s slot) error {
	off := control{"net/ipv6/conf/" + s.link + "/disable_ipv6", "1", true}
	if err := off.write(); err != nil {
		return err
	}
	link, err := w.host.LinkByName(s.link)
	if err != nil {
		return fmt.Errorf("find link %s: %w", s.link, err)
	}
	if err := w.host.LinkSetUp(link); err != nil {
		return fmt.Errorf("set link %s up: %w", s.link, err)
	}
	index := link.Attrs().Index
	route := &netlink.Route{LinkIndex: index, Dst: hostNet(s.address), Scope: netlink.SCOPE_LINK, Src: w.gateway.AsSlice()}
	if err := w.host.RouteReplace(route); err != nil {
		return fmt.Errorf("route %s: %w", s.address, err)
	}
	return addNeighbour(w.host, index, s.address, containerMAC)
}

func loopback() netlink.Link {
	return &netlink.GenericLink{LinkAttrs: netlink.LinkAttrs{Name: "lo", Index: 1}}
}

func addNeighbour(h *netlink.Handle, link int, addr netip.Addr, mac net.HardwareAddr) error {
	n := &netlink.Neigh{LinkIndex: link, Family: netlink.FAMILY_V4, State: netlink.NUD_PERMANENT, IP: addr.AsSlice(), HardwareAddr: mac}
	if err := h.NeighSet(n); err != nil {
		return fmt.Errorf("set neighbour %s: %w", addr, err)
	}
	return nil
}

func hostNet(addr netip.Addr) *net.IPNet {
	return &net.IPNet{IP: addr.AsSlice(), Mask: net.CIDRMask(32, 32)}
}

// control is a kernel parameter below /proc/sys of the thread's own network
// namespace.
type control struct {
	name, value string
	optional    bool // not in every kernel
}

// namespaceSettings are those of a container: no IPv6, and any user may listen
// on every port and ping, for which no capability is given.
func namespaceSettings() []control {
	return []control{
		{"net/ipv6/conf/all/disable_ipv6", "1", true},
		{"net/ipv6/conf/default/disable_ipv6", "1", true},
		{"net/ipv4/ip_unprivileged_port_start", "0", false},
		{"net/ipv4/ping_group_range", "0 2147483647", true},
	}
}

func (c control) write() error {
	err := os.WriteFile("/proc/sys/"+c.name, []byte(c.value), 0)
	if c.optional && errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// unpin drops the namespace, which ends with its last process and takes the
// link along. Deleting the link instead would wait 15 ms.
func unpin(file string) error {
	if err := unix.Unmount(file, unix.MNT_DETACH); err != nil && err != unix.EINVAL && err != unix.ENOENT {
		return fmt.Errorf("unmount %s: %w", file, err)
	}
	if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

func pinned(file string) bool {
	var st unix.Statfs_t
	return unix.Statfs(file, &st) == nil && st.Type == unix.NSFS_MAGIC
}

// wiring is what all links have in common.
type wiring struct {
	host    *netlink.Handle
	gateway netip.Addr
	mtu     int
}

// newWiring gives the host the gateway's address, on the loopback since no link
// lasts as long as the network.
func newWiring(linkPrefix string, gateway netip.Addr) (*wiring, error) {
	h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("open netlink: %w", err)
	}
	// A machine with many links answers with more than the default buffer holds.
	if err := h.SetSocketReceiveBufferSize(netlinkBuffer, true); err != nil {
		h.Close()
		return nil, fmt.Errorf("size netlink's buffer: %w", err)
	}
	w := &wiring{host: h, gateway: gateway, mtu: uplinkMTU(h)}
	if _, err := w.claim(linkPrefix); err != nil {
		h.Close()
		return nil, err
	}
	return w, nil
}

// uplinkMTU is the packet size of the host's default route if it is less than
// Ethernet's, or 1500.
func uplinkMTU(h *netlink.Handle) int {
	const ethernet = 1500
	routes, err := h.RouteListFiltered(netlink.FAMILY_V4, &netlink.Route{Dst: nil}, netlink.RT_FILTER_DST)
	if err != nil || len(routes) == 0 {
		return ethernet
	}
	link, err := h.LinkByIndex(routes[0].LinkIndex)
	if err != nil || link.Attrs().MTU <= 0 {
		return ethernet
	}
	return min(ethernet, link.Attrs().MTU)
}

// cut deletes the links that are still there. Most go with their namespaces,
// but one of these lasts for minutes where a socket in it has something left to
// send, or while somebody looks at it.
func (w *wiring) cut(prefix string) error {
	links, err := w.host.LinkList()
	if err != nil && !errors.Is(err, netlink.ErrDumpInterrupted) { // links come and go: what there is of the list is good
		return fmt.Errorf("list links: %w", err)
	}
	var errs []error
	for _, l := range links {
		number, ok := strings.CutPrefix(l.Attrs().Name, prefix)
		if _, err := strconv.Atoi(number); !ok || err != nil {
			continue
		}
		if err := w.host.LinkDel(l); err != nil && !errors.Is(err, unix.ENODEV) {
			errs = append(errs, fmt.Errorf("delete link %s: %w", l.Attrs().Name, err))
		}
	}
	return errors.Join(errs...)
}

// dismantle takes the gateway's address back.
func (w *wiring) dismantle() error {
	err := w.host.AddrDel(loopback(), &netlink.Addr{IPNet: hostNet(w.gateway)})
	if err != nil && !errors.Is(err, unix.EADDRNOTAVAIL) {
		return fmt.Errorf("remove address %s from lo: %w", w.gateway, err)
	}
	return nil
}

func linkName(prefix string, index int) string { return prefix + strconv.Itoa(index) }
