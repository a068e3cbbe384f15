// Package egress is the egress guard: it decides where the daemon may connect
// when somebody else names the address. Every such connection is checked by the
// address that its name was resolved to, so no name, redirect or changing DNS
// answer leads around it.
package egress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/net/http/httpproxy"

	"cupola/runtime/fault"
)

// ErrAddress says that an address may not be connected to.
var ErrAddress = errors.New("the address must not be this machine's own, a container's or link-local")

// clouds are where clouds tell machines their secrets, besides link-local
// addresses: Amazon and Google by IPv6, Azure, Alibaba, Oracle.
var clouds = []netip.Addr{netip.MustParseAddr("fd00:ec2::254"), netip.MustParseAddr("fd20:ce::254"),
	netip.MustParseAddr("168.63.129.16"), netip.MustParseAddr("100.100.100.200"), netip.MustParseAddr("192.0.0.192")}

// Guard refuses addresses. It always refuses link-local and multicast
// addresses, addresses that belong to no machine, and clouds' metadata services.
// Its zero value also refuses all addresses of this machine.
type Guard struct {
	Operator   bool                      // an operator named the address: nothing else is refused
	Local      bool                      // this machine's own addresses may be connected to, loopback too
	Containers netip.Prefix              // their network; the zero value for none
	Listeners  func(netip.AddrPort) bool // reports whether this machine serves everybody there, but for its loopback; nil: nowhere
}

// Control is for a net.Dialer's ControlContext: it sees the address that a name
// was resolved to.
func (g Guard) Control(_ context.Context, network, address string, _ syscall.RawConn) error {
	if !strings.HasPrefix(network, "tcp") {
		return fmt.Errorf("%w: %s", ErrAddress, network)
	}
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	return g.Check(to)
}

// Dialer connects by g alone.
func (g Guard) Dialer(timeout time.Duration) *net.Dialer {
	return &net.Dialer{Timeout: timeout, ControlContext: fault.Control("egress", g.Control)}
}

// Transport makes requests by g, each redirect included, through the proxies that
// the environment names, which are the machine's wherever they are. A proxy finds
// the address of a name itself and connects from where it is, so of what it is
// asked for only addresses can be checked here.
func (g Guard) Transport(timeout time.Duration) *http.Transport {
	config := httpproxy.FromEnvironment()
	choose, proxies := config.ProxyFunc(), proxiesOf(config)
	guarded, free := g.Dialer(timeout), &net.Dialer{Timeout: timeout}
	return &http.Transport{
		Proxy: func(r *http.Request) (*url.URL, error) {
			proxy, err := choose(r.URL)
			if proxy == nil || err != nil {
				return nil, err
			}
			return proxy, g.checkHost(r.URL)
		},
		DialContext: fault.Dial("egress", func(ctx context.Context, network, address string) (net.Conn, error) {
			if slices.Contains(proxies, address) {
				return free.DialContext(ctx, network, address)
			}
			return guarded.DialContext(ctx, network, address)
		}),
	}
}

// proxiesOf are the addresses of proxies as a transport dials them.
func proxiesOf(c *httpproxy.Config) (all []string) {
	ports := map[string]string{"http": "80", "https": "443", "socks5": "1080", "socks5h": "1080"}
	choose := c.ProxyFunc()
	for _, scheme := range []string{"http", "https"} {
		u, err := choose(&url.URL{Scheme: scheme, Host: "proxied.invalid"})
		if err != nil || u == nil {
			continue
		}
		port := u.Port()
		if port == "" {
			port = ports[u.Scheme]
		}
		all = append(all, net.JoinHostPort(u.Hostname(), port))
	}
	return all
}

// checkHost checks a URL whose host is an address, or a name of this machine.
func (g Guard) checkHost(u *url.URL) error {
	host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		host = "127.0.0.1"
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return nil // a name
	}
	port, err := strconv.ParseUint(u.Port(), 10, 16)
	if err != nil {
		port = map[string]uint64{"http": 80, "https": 443}[u.Scheme]
	}
	return g.Check(netip.AddrPortFrom(ip, uint16(port)))
}

// Check is nil or ErrAddress.
func (g Guard) Check(to netip.AddrPort) error {
	for _, ip := range meant(to.Addr()) {
		if err := g.check(netip.AddrPortFrom(ip, to.Port())); err != nil {
			return err
		}
	}
	return nil
}

func (g Guard) check(to netip.AddrPort) error {
	ip := to.Addr()
	switch {
	case forbidden(ip):
		return ErrAddress
	case g.Operator:
		return nil
	case g.Containers.IsValid() && g.Containers.Contains(ip):
		return ErrAddress
	case g.Local:
		return nil
	case ip.IsLoopback():
		return ErrAddress
	case g.Listeners != nil && g.Listeners(to):
		return nil
	case isOwn(ip):
		return ErrAddress
	}
	return nil
}

// Prefixes whose addresses have one of IPv4 in them.
var (
	nat64      = netip.MustParsePrefix("64:ff9b::/96")   // RFC 6052
	localNAT64 = netip.MustParsePrefix("64:ff9b:1::/48") // RFC 8215
	sixToFour  = netip.MustParsePrefix("2002::/16")      // RFC 3056
	teredo     = netip.MustParsePrefix("2001::/32")      // RFC 4380
	compatible = netip.MustParsePrefix("::/96")          // RFC 4291
)

// Plain is the address that is meant: that of IPv4, where IPv6 only wraps one.
func Plain(ip netip.Addr) netip.Addr {
	ip = ip.Unmap().WithZone("")
	if all := ip.As16(); nat64.Contains(ip) {
		ip = netip.AddrFrom4([4]byte(all[12:]))
	}
	return ip
}

// meant are the addresses at which a connection to one may end: its own, and
// that of IPv4 which a translator or a tunnel would take out of it.
func meant(ip netip.Addr) []netip.Addr {
	ip = Plain(ip)
	all := []netip.Addr{ip}
	b := ip.As16()
	embed := func(v4 ...byte) { all = append(all, netip.AddrFrom4([4]byte(v4))) }
	switch {
	case ip.Is4():
	case localNAT64.Contains(ip): // its operator chooses where in the address
		embed(b[12:]...)
		embed(b[6], b[7], b[9], b[10])
		embed(b[7], b[9], b[10], b[11])
		embed(b[9], b[10], b[11], b[12])
	case sixToFour.Contains(ip):
		embed(b[2:6]...)
	case teredo.Contains(ip):
		embed(b[4:8]...) // the server's
		embed(^b[12], ^b[13], ^b[14], ^b[15])
	case compatible.Contains(ip) && !ip.IsLoopback() && !ip.IsUnspecified():
		embed(b[12:]...)
	}
	return all
}

// noMachine are the addresses of IPv4 that mean this network, or all of it.
var noMachine = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("255.255.255.255/32")}

// forbidden reports whether a plain address is always refused.
func forbidden(ip netip.Addr) bool {
	return ip.IsLinkLocalUnicast() || ip.IsMulticast() || ip.IsUnspecified() || slices.Contains(clouds, ip) ||
		slices.ContainsFunc(noMachine, func(p netip.Prefix) bool { return p.Contains(ip) })
}

// isOwn reports whether a plain address is one of this machine's now. Where it
// cannot be known, it may be.
func isOwn(ip netip.Addr) bool {
	if ip.IsLoopback() {
		return true
	}
	all, err := net.InterfaceAddrs()
	if err != nil {
		return true
	}
	return slices.ContainsFunc(all, func(a net.Addr) bool {
		network, ok := a.(*net.IPNet)
		if !ok {
			return false
		}
		own, ok := netip.AddrFromSlice(network.IP)
		return ok && own.Unmap() == ip
	})
}
