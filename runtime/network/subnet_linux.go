package network

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Uses lists all IPv4 addresses of this machine and the routes of all its
// tables, but for the default ones.
func Uses() ([]Use, error) {
	routes, err := netlink.RouteListFiltered(netlink.FAMILY_V4, &netlink.Route{Table: unix.RT_TABLE_UNSPEC}, netlink.RT_FILTER_TABLE)
	if err != nil && !errors.Is(err, netlink.ErrDumpInterrupted) { // they come and go: what there is of the list is good
		return nil, fmt.Errorf("list routes: %w", err)
	}
	addrs, err := netlink.AddrList(nil, netlink.FAMILY_V4)
	if err != nil && !errors.Is(err, netlink.ErrDumpInterrupted) {
		return nil, fmt.Errorf("list addresses: %w", err)
	}
	links, err := linksByIndex() // after what leads to them: a link that is missing has gone
	if err != nil {
		return nil, err
	}
	uses := usedRoutes(routes, links)
	for _, a := range addrs {
		u := Use{Prefix: prefixOf(a.IPNet), Link: links[a.LinkIndex].Name}
		if a.Label == formerLabel || strings.HasPrefix(a.Label, labelPrefix) {
			u.Cupola, u.label = true, a.Label
		}
		uses = append(uses, u)
	}
	return uses, nil
}

func linksByIndex() (map[int]net.Interface, error) {
	all, err := net.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("list links: %w", err)
	}
	byIndex := map[int]net.Interface{}
	for _, l := range all {
		byIndex[l.Index] = l
	}
	return byIndex, nil
}

func usedRoutes(routes []netlink.Route, links map[int]net.Interface) (uses []Use) {
	for _, r := range routes {
		if r.Dst == nil || r.Table == unix.RT_TABLE_LOCAL { // which says again what addresses say
			continue
		}
		l, there := links[r.LinkIndex]
		to := prefixOf(r.Dst)
		if to.Bits() == 0 || r.LinkIndex != 0 && !there {
			continue
		}
		uses = append(uses, Use{Prefix: to, Link: l.Name, Cupola: slices.Equal(l.HardwareAddr, hostMAC)})
	}
	return uses
}

func prefixOf(n *net.IPNet) netip.Prefix {
	addr, _ := netip.AddrFromSlice(n.IP.To4()) // the family is IPv4
	bits, _ := n.Mask.Size()
	return netip.PrefixFrom(addr, bits)
}

// Live reports whether a container has a namespace of the Network in dir. It
// returns an error if the caller lacks the permission.
func Live(dir string) (bool, error) {
	ids, err := os.ReadDir(filepath.Join(dir, "ids"))
	if errors.Is(err, fs.ErrPermission) {
		return true, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	return slices.ContainsFunc(ids, func(id os.DirEntry) bool {
		index, err := os.Readlink(filepath.Join(dir, "ids", id.Name()))
		return err == nil && pinned(filepath.Join(dir, "ns", index))
	}), nil
}

// Claim gives the host the first address of a subnet, which makes the subnet
// that of the Network whose links' names begin with linkPrefix: two that want
// the same at once do not both get it, and the error of one is ErrTaken. A
// subnet that the Network had before is given up.
func Claim(linkPrefix string, subnet netip.Prefix) error {
	w, err := newWiring(linkPrefix, subnet.Masked().Addr().Next())
	if err != nil {
		return err
	}
	w.host.Close()
	return nil
}

// claim gives the host the gateway's address, with a label that tells whose it
// is. fresh is whether the host did not have it.
func (w *wiring) claim(linkPrefix string) (fresh bool, err error) {
	addrs, err := w.host.AddrList(loopback(), netlink.FAMILY_V4)
	if err != nil {
		return false, fmt.Errorf("list addresses: %w", err)
	}
	label := addressLabel(linkPrefix)
	isOurs := func(a netlink.Addr) bool { return prefixOf(a.IPNet).Addr() == w.gateway }
	if n := slices.IndexFunc(addrs, isOurs); n < 0 {
		fresh = true
		err = w.host.AddrAdd(loopback(), &netlink.Addr{IPNet: hostNet(w.gateway), Label: label})
	} else if addrs[n].Label != label && addrs[n].Label != formerLabel {
		err = unix.EEXIST
	}
	if errors.Is(err, unix.EEXIST) { // if only by now
		err = ErrTaken
	}
	if err != nil {
		return false, fmt.Errorf("set address %s on lo: %w", w.gateway, err)
	}
	for _, a := range addrs {
		if a.Label != label || isOurs(a) {
			continue
		}
		if err := w.host.AddrDel(loopback(), &a); err != nil && !errors.Is(err, unix.EADDRNOTAVAIL) {
			return fresh, fmt.Errorf("remove address %s from lo: %w", a.IP, err)
		}
	}
	return fresh, nil
}
