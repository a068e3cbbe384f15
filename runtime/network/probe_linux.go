package network

import (
	"fmt"
	"net"
	"os"
	"slices"
	"strings"

	"github.com/google/nftables"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"cupola/runtime/thread"
)

// ProbeFilter tries whether the kernel takes the nftables table, in a network
// namespace that ends with the call.
func ProbeFilter() error {
	return elsewhere(func() error {
		f, err := newFirewall(Config{}.withDefaults())
		if err != nil {
			return err
		}
		return f.close()
	})
}

// ProbeLink tries whether the kernel makes a container's link, in a network
// namespace that ends with the call.
func ProbeLink() error {
	return elsewhere(func() error {
		h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
		if err != nil {
			return fmt.Errorf("open netlink: %w", err)
		}
		defer h.Close()
		attrs := netlink.NewLinkAttrs()
		attrs.Name = "probe"
		if err := h.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: "eborp"}); err != nil {
			return fmt.Errorf("make a veth link: %w", err)
		}
		return nil
	})
}

// elsewhere runs do on a thread in a new network namespace.
func elsewhere(do func() error) error {
	return inNamespace(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("make a network namespace: %w", err)
		}
		return nil
	}, do)
}

// inNamespace runs do on a thread in the network namespace that enter moves it to.
func inNamespace(enter, do func() error) error {
	host, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return err
	}
	defer host.Close()
	return thread.Borrow("network", func() (restored bool, err error) {
		if err = enter(); err == nil {
			err = do() // after a panic of it the thread ends
		}
		return unix.Setns(int(host.Fd()), unix.CLONE_NEWNET) == nil, err
	})
}

// Look takes a Survey.
func Look() (Survey, error) {
	var s Survey
	links, err := net.Interfaces()
	if err != nil {
		return s, fmt.Errorf("list links: %w", err)
	}
	for _, l := range links {
		if slices.Equal(l.HardwareAddr, hostMAC) {
			s.Links = append(s.Links, l.Name)
		}
	}
	if s.Addresses, err = addresses(); err != nil {
		return s, err
	}
	conn, err := nftables.New()
	if err != nil {
		return s, explain(err)
	}
	tables, err := conn.ListTablesOfFamily(nftables.TableFamilyIPv4)
	if err != nil {
		return s, explain(err)
	}
	for _, t := range tables {
		if strings.HasPrefix(t.Name, tablePrefix) {
			s.Tables = append(s.Tables, t.Name)
		}
	}
	s.Rules, s.Closed, err = others(conn)
	return s, err
}

func addresses() (found []Address, err error) {
	all, err := netlink.AddrList(loopback(), netlink.FAMILY_V4)
	if err != nil {
		return nil, fmt.Errorf("list addresses: %w", err)
	}
	for _, a := range all {
		owner, ours := strings.CutPrefix(a.Label, labelPrefix)
		if !ours {
			owner = ""
		}
		if ours || a.Label == formerLabel {
			found = append(found, Address{prefixOf(a.IPNet).Addr(), owner})
		}
	}
	return found, nil
}

// others are the rules in chains of others, and the chains that drop packets.
func others(conn *nftables.Conn) (rules []ForeignRule, closed []Closed, err error) {
	set, err := foreign(conn)
	if err != nil {
		return nil, nil, explain(err)
	}
	marked, err := set.marked()
	if err != nil {
		return nil, nil, err
	}
	family := map[nftables.TableFamily]string{nftables.TableFamilyIPv4: "ip", nftables.TableFamilyINet: "inet"}
	for _, r := range marked {
		rules = append(rules, ForeignRule{markOf(r), family[r.Table.Family], r.Table.Name, r.Chain.Name, r.Handle})
	}
	found, err := set.closings()
	for _, c := range found {
		closed = append(closed, Closed{c.chain.Table.Name, c.chain.Name, c.chain.Table.Name == firewalldTable})
	}
	return rules, closed, err
}
