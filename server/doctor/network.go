package doctor

import (
	"context"
	"fmt"
	"net/netip"
	"net/url"
	"os/exec"
	"slices"
	"strings"

	"cupola/runtime/network"
	"cupola/server/dns"
)

func (m *machine) nftables(context.Context) Result {
	if err := network.ProbeFilter(); err != nil {
		text, _, _ := strings.Cut(err.Error(), " (load")
		return failure(text, "sudo modprobe -a nf_tables nft_ct nft_fib_ipv4 nft_reject_ipv4 nft_masq nft_chain_nat")
	}
	return fine("created and deleted a table like cupola's")
}

func (m *machine) veth(context.Context) Result {
	if err := network.ProbeLink(); err != nil {
		return failed(err, "sudo modprobe veth")
	}
	return fine("created and deleted a link in a new network namespace")
}

func (m *machine) forward(context.Context) Result {
	switch m.read("proc/sys/net/ipv4/ip_forward") {
	case "1":
		return fine("on")
	case "0":
		if !m.writable("proc/sys/net/ipv4/ip_forward") {
			return warning("off, and it cannot be turned on here: apps cannot reach any network", "sudo sysctl -w net.ipv4.ip_forward=1   # on the host of this container")
		}
		return fine("off; cupola turns it on when the first app needs it")
	}
	return failure("the kernel has no IPv4", "boot without ipv4.disable=1")
}

// firewall looks for foreign chains that drop containers' packets.
func (m *machine) firewall(context.Context) Result {
	s, err := network.Look()
	if err != nil {
		return warning(err.Error(), "sudo modprobe nf_tables")
	}
	_, err = exec.LookPath("firewall-cmd")
	return m.judgeFirewall(s.Closed, err == nil)
}

// judgeFirewall judges the chains of others. command is whether firewalld can be asked.
func (m *machine) judgeFirewall(closed []network.Closed, command bool) Result {
	var names []string
	for _, c := range closed {
		if c.Firewalld && !command {
			subnet, _, err := m.Subnet()
			if err != nil {
				return failed(err, "ip route   # and remove routes that are not needed")
			}
			return warning("firewalld drops what containers send, and its command firewall-cmd is not in PATH: apps cannot reach any network", network.FirewalldFix(subnet))
		}
		if name := c.String(); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return fine("no other firewall drops containers' packets")
	}
	return fine("cupola has its containers' packets accepted where another firewall drops all others: " + strings.Join(names, ", "))
}

// subnet checks the subnet that the daemon would use for containers.
func (m *machine) subnet(context.Context) Result {
	subnet, inWay, err := m.Subnet()
	if err != nil {
		return failed(err, "ip route   # and remove routes that are not needed")
	}
	if len(inWay) > 0 {
		return warning(fmt.Sprintf("the containers' subnet %s overlaps %s, which containers cannot reach", subnet, inWay[0]),
			fmt.Sprintf("sudo cupola cleanup --data-dir %s   # with the daemon stopped; the next start picks another subnet", quoted(m.DataDir)))
	}
	return fine(subnet.String() + " is free")
}

func (m *machine) resolvers(context.Context) Result { return judgeResolvers(dns.HostResolvers()) }

func judgeResolvers(found []netip.AddrPort) Result {
	if len(found) == 0 {
		return warning("/etc/resolv.conf has no nameserver: apps resolve only names of other apps", `echo "nameserver 1.1.1.1" | sudo tee -a /etc/resolv.conf   # or your own`)
	}
	var names []string
	for _, a := range found {
		names = append(names, a.Addr().String())
	}
	return fine("apps' DNS queries are forwarded to " + strings.Join(names, ", "))
}

// proxy checks that clients on this machine do not use a proxy for cupola.
func (m *machine) proxy(context.Context) Result {
	var set string
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"} {
		if v := m.getenv(name); v != "" && set == "" {
			set = name + "=" + redacted(v)
		}
	}
	if set == "" {
		return fine("none")
	}
	host := "api." + m.Domain
	if covered(m.getenv("NO_PROXY")+","+m.getenv("no_proxy"), host) {
		return fine(set + ", not for ." + m.Domain)
	}
	return warning(fmt.Sprintf("%s: cf and curl use this proxy for %s", set, host), fmt.Sprintf(`export NO_PROXY="${NO_PROXY:+$NO_PROXY,}localhost,127.0.0.1,.%s"`, m.Domain))
}

func redacted(proxy string) string {
	u, err := url.Parse(proxy)
	if err != nil {
		return "…"
	}
	return u.Redacted()
}

// covered reports whether NO_PROXY's list contains the host or a parent domain.
func covered(list, host string) bool {
	for entry := range strings.SplitSeq(list, ",") {
		entry = strings.TrimPrefix(strings.TrimSpace(entry), "*")
		if entry == "" {
			if list == "*" {
				return true
			}
			continue
		}
		if host == entry || strings.HasSuffix(host, "."+strings.TrimPrefix(entry, ".")) {
			return true
		}
	}
	return strings.Contains(","+list+",", ",*,")
}
