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

	"cupola/runtime/egress"
	guard "cupola/runtime/fault"
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
	where    egress.Guard
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
	return osb.Broker{URL: b.URL, Username: b.Username, Password: b.Password, Dial: s.reach.dialer(l.Front, l.Where)}
}

var errOutOfReach = errors.New("the apps of the broker's space may not connect to it by their security groups")

func (r *reach) dialer(front func(port string) string, where egress.Guard) func(context.Context, string, string) (net.Conn, error) {
	r.where = where
	guarded := net.Dialer{ControlContext: guard.Control("broker", r.control)}
	return guard.Dial("broker", func(ctx context.Context, network, address string) (net.Conn, error) {
		host, port, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		if own := front(port); own != "" && r.isOurs(host) {
			return (&net.Dialer{}).DialContext(ctx, network, own)
		}
		return guarded.DialContext(ctx, network, address)
	})
}

// control refuses to connect to an address that is out of reach. A name was
// resolved by then: it cannot change afterwards.
func (r *reach) control(_ context.Context, _, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	switch {
	case err != nil:
		return err
	case r.anywhere:
		return egress.Guard{Operator: true}.Check(at)
	case !r.allows(at):
		return errOutOfReach
	}
	return nil
}

// isOurs tells whether a host is below one of the platform's domains.
func (r *reach) isOurs(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	return slices.ContainsFunc(r.domains, func(d string) bool { return strings.HasSuffix(host, "."+d) })
}

// allows tells whether a rule lets apps connect to an address. No rule leads to
// the host's own loopback and links, whatever its range, and one for networks
// neither to the host nor to containers: networks are other machines.
func (r *reach) allows(at netip.AddrPort) bool {
	ip := egress.Plain(at.Addr())
	inside := r.where.Containers.IsValid() && r.where.Containers.Contains(ip)
	switch {
	case egress.Guard{Operator: true}.Check(at) != nil:
		return false
	case ip.IsLoopback():
		return r.where.Local
	}
	own := r.where.Check(at) != nil
	return slices.ContainsFunc(r.rules, func(rule cf.SecurityRule) bool {
		if rule.Protocol != "all" && (rule.Protocol != "tcp" || !inPorts(rule.Ports, at.Port())) {
			return false
		}
		return slices.ContainsFunc(destinationsOf(rule.Destination, ip), func(d destination) bool {
			switch {
			case inside:
				return r.where.Containers.Contains(d.first) && r.where.Containers.Contains(d.last)
			case own:
				return rule.Ports != "" || d.first == d.last
			}
			return true
		})
	})
}

// destination is all addresses from first to last.
type destination struct{ first, last netip.Addr }

// destinationsOf are those of a list that have the address.
func destinationsOf(list string, a netip.Addr) (found []destination) {
	for text := range strings.SplitSeq(list, ",") {
		d, err := parseDestination(strings.TrimSpace(text))
		if err == nil && d.first.BitLen() == a.BitLen() && d.first.Compare(a) <= 0 && a.Compare(d.last) <= 0 {
			found = append(found, d)
		}
	}
	return found
}

func parseDestination(text string) (d destination, err error) {
	if block, err := netip.ParsePrefix(text); err == nil {
		return blockOf(block.Masked()), nil
	}
	from, to, isRange := strings.Cut(text, "-")
	if d.first, err = netip.ParseAddr(strings.TrimSpace(from)); err != nil || !isRange {
		d.last = d.first
		return d, err
	}
	d.last, err = netip.ParseAddr(strings.TrimSpace(to))
	return d, err
}

// blockOf is a block whose host bits are zero.
func blockOf(block netip.Prefix) destination {
	last := block.Addr().AsSlice()
	for bit := block.Bits(); bit < 8*len(last); bit++ {
		last[bit/8] |= 1 << (7 - bit%8)
	}
	end, _ := netip.AddrFromSlice(last)
	return destination{block.Addr(), end}
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
