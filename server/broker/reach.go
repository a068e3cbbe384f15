package broker

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"cupola/server/osb"
	"cupola/store"
	"cupola/store/cf"
)

// reach says where a broker may be. An admin's may be anywhere. A broker of a
// space is named by a developer of it, and is reached no further than the apps
// of the space reach: by the security groups of the space, and through the
// platform's own front, since an app may be the broker. Otherwise a URL would
// let a developer ask whatever the platform's host can.
type reach struct {
	anywhere bool
	loopback bool     // is within reach
	domains  []string // whose hosts are the platform's own
	rules    []cf.SecurityRule
}

func reachOf(tx *store.Tx, b *cf.ServiceBroker) (*reach, error) {
	r := &reach{anywhere: b.SpaceGUID == ""}
	domains, err := store.Domains.All(tx)
	if err != nil {
		return nil, err
	}
	for _, d := range domains {
		if !d.Internal {
			r.domains = append(r.domains, strings.ToLower(d.Name))
		}
	}
	if r.anywhere {
		return r, nil
	}
	groups, err := store.SecurityGroups.All(tx)
	for _, g := range groups {
		if g.GlobalRunning || slices.Contains(g.RunningSpaces, b.SpaceGUID) {
			r.rules = append(r.rules, g.Rules...)
		}
	}
	return r, err
}

// target is a broker for the client.
func (l *Loop) target(s *step, b *cf.ServiceBroker) osb.Broker {
	return osb.Broker{URL: b.URL, Username: b.Username, Password: b.Password, Dial: s.reach.dialer(l.Front, l.Loopback)}
}

var errOutOfReach = errors.New("the apps of the broker's space may not connect to it by their security groups")

func (r *reach) dialer(front func(port string) string, loopback bool) func(context.Context, string, string) (net.Conn, error) {
	r.loopback = loopback
	guarded := net.Dialer{Control: r.control}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		host, port, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		if own := front(port); own != "" && r.isOurs(host) {
			return (&net.Dialer{}).DialContext(ctx, network, own)
		}
		return guarded.DialContext(ctx, network, address)
	}
}

// control refuses to connect to an address that is out of reach. A name was
// resolved by then: it cannot change afterwards.
func (r *reach) control(_, address string, _ syscall.RawConn) error {
	if r.anywhere {
		return nil
	}
	at, err := netip.ParseAddrPort(address)
	if err == nil && !r.allows(netip.AddrPortFrom(at.Addr().Unmap(), at.Port())) {
		err = errOutOfReach
	}
	return err
}

// isOurs tells whether a host is below one of the platform's domains.
func (r *reach) isOurs(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	return slices.ContainsFunc(r.domains, func(d string) bool { return strings.HasSuffix(host, "."+d) })
}

// allows tells whether a rule lets apps connect to an address. No rule leads to
// the host's own loopback and links, whatever its range.
func (r *reach) allows(at netip.AddrPort) bool {
	if r.loopback && at.Addr().IsLoopback() {
		return true
	}
	if a := at.Addr(); a.IsLoopback() || a.IsUnspecified() || a.IsMulticast() || a.IsLinkLocalUnicast() {
		return false
	}
	return slices.ContainsFunc(r.rules, func(rule cf.SecurityRule) bool {
		return (rule.Protocol == "all" || rule.Protocol == "tcp" && inPorts(rule.Ports, at.Port())) && inDestinations(rule.Destination, at.Addr())
	})
}

func inDestinations(list string, a netip.Addr) bool {
	for d := range strings.SplitSeq(list, ",") {
		d = strings.TrimSpace(d)
		if prefix, err := netip.ParsePrefix(d); err == nil {
			if prefix.Contains(a) {
				return true
			}
			continue
		}
		from, to, isRange := strings.Cut(d, "-")
		if !isRange {
			to = from
		}
		first, err1 := netip.ParseAddr(from)
		last, err2 := netip.ParseAddr(to)
		if err1 == nil && err2 == nil && first.BitLen() == a.BitLen() && first.Compare(a) <= 0 && a.Compare(last) <= 0 {
			return true
		}
	}
	return false
}

func inPorts(list string, port uint16) bool {
	for p := range strings.SplitSeq(strings.ReplaceAll(list, " ", ""), ",") {
		from, to, isRange := strings.Cut(p, "-")
		if !isRange {
			to = from
		}
		first, err1 := strconv.ParseUint(from, 10, 16)
		last, err2 := strconv.ParseUint(to, 10, 16)
		if err1 == nil && err2 == nil && first <= uint64(port) && uint64(port) <= last {
			return true
		}
	}
	return false
}
