package doctor

import (
	"context"
	"fmt"
	"net/netip"
	"net/url"
	"strings"

	"cupola/runtime/network"
	"cupola/server/dns"
)

func (m *machine) nftables(context.Context) Result {
	if err := network.ProbeFilter(); err != nil {
		text, _, _ := strings.Cut(err.Error(), " (load")
		return failure(text, "sudo modprobe -a nf_tables nft_ct nft_fib_ipv4 nft_reject_ipv4 nft_masq nft_chain_nat")
	}
	return fine("a table like cupola's was made and dropped")
}

func (m *machine) veth(context.Context) Result {
	if err := network.ProbeLink(); err != nil {
		return failed(err, "sudo modprobe veth")
	}
	return fine("a link was made and dropped, in a network namespace of its own")
}

func (m *machine) forward(context.Context) Result {
	switch m.read("proc/sys/net/ipv4/ip_forward") {
	case "1":
		return fine("on")
	case "0":
		if !m.writable("proc/sys/net/ipv4/ip_forward") {
			return warning("off, and this system does not let it be turned on: apps reach no network", "sudo sysctl -w net.ipv4.ip_forward=1   # on the host of this container")
		}
		return fine("off; cupola turns it on with the first app that may reach a network")
	}
	return failure("the kernel has no IPv4", "boot without ipv4.disable=1")
}

// firewall looks for others' chains that drop what containers send.
func (m *machine) firewall(context.Context) Result {
	s, err := network.Look()
	if err != nil {
		return warning(err.Error(), "sudo modprobe nf_tables")
	}
	return m.judgeFirewall(s.Dropping)
}

func (m *machine) judgeFirewall(dropping []string) Result {
	if len(dropping) == 0 {
		return fine("nobody else drops what containers send")
	}
	return warning("forwarded packets are dropped by "+strings.Join(dropping, ", ")+": apps serve, but reach no network",
		fmt.Sprintf("sudo iptables -I FORWARD -i %[1]s+ -j ACCEPT && sudo iptables -I FORWARD -o %[1]s+ -m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT", m.LinkPrefix))
}

// subnet tells which addresses a daemon would have for containers.
func (m *machine) subnet(context.Context) Result {
	subnet, inWay, err := m.Subnet()
	if err != nil {
		return failed(err, "ip route   # and take away what needs no route of its own")
	}
	if len(inWay) > 0 {
		return warning(fmt.Sprintf("%s of containers overlaps %s, which they cannot reach", subnet, inWay[0]),
			fmt.Sprintf("sudo cupola cleanup --data-dir %s   # with the daemon stopped; its next start takes other addresses", quoted(m.DataDir)))
	}
	return fine(subnet.String() + " is free")
}

func (m *machine) resolvers(context.Context) Result { return judgeResolvers(dns.HostResolvers()) }

func judgeResolvers(found []netip.AddrPort) Result {
	if len(found) == 0 {
		return warning("/etc/resolv.conf names no server: apps resolve no names but those of other apps", `echo "nameserver 1.1.1.1" | sudo tee -a /etc/resolv.conf   # or your own`)
	}
	var names []string
	for _, a := range found {
		names = append(names, a.Addr().String())
	}
	return fine("names that apps ask for are asked of " + strings.Join(names, ", "))
}

// proxy checks that clients on this machine do not look for it behind a proxy.
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
	return warning(fmt.Sprintf("%s: cf and curl look for %s behind it", set, host), fmt.Sprintf(`export NO_PROXY="${NO_PROXY:+$NO_PROXY,}localhost,127.0.0.1,.%s"`, m.Domain))
}

func redacted(proxy string) string {
	u, err := url.Parse(proxy)
	if err != nil {
		return "…"
	}
	return u.Redacted()
}

// covered tells whether NO_PROXY's list names the host or a domain above it.
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
