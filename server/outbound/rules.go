// Package outbound connects the daemon to what developers of a space name: service
// brokers and the URLs of calls. It gets no further than the apps of the space, by the
// security groups of the space, or through the platform's own router, since an app may be
// what is named. Otherwise a URL would let a developer ask whatever this machine can.
package outbound

import (
	"context"
	"crypto/x509"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"cupola/runtime/egress"
	"cupola/runtime/fault"
	"cupola/store"
	"cupola/store/cf"
)

// Rules say where the daemon may connect for a space, or for an operator, who may name
// anything.
type Rules struct {
	anywhere bool
	where    egress.Guard // of the network that is dialed
	domains  []string     // whose hosts are the platform's own
	rules    []cf.SecurityRule
}

// Network is what is the same for all spaces.
type Network struct {
	// Router is the address at which the router listens on the port of a URL, "" for none.
	Router func(port string) string
	// Where says where spaces may not connect whatever the rules of security groups; with
	// its Local they may on the loopback.
	Where egress.Guard
	// RootCAs are the authorities that certificates are trusted by; nil: the system's. They
	// are asked for when a connection needs them.
	RootCAs func() *x509.CertPool
}

// Of are the rules of a space; "" is an operator's.
func Of(tx *store.Tx, spaceGUID string) (*Rules, error) {
	r := &Rules{anywhere: spaceGUID == ""}
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
		if g.GlobalRunning || slices.Contains(g.RunningSpaces, spaceGUID) {
			r.rules = append(r.rules, g.Rules...)
		}
	}
	return r, err
}

var errOutOfReach = errors.New("the apps of its space may not connect to it by their security groups")

// Dial is the DialContext of a transport that is held to the rules.
func (r *Rules) Dial(n Network) func(ctx context.Context, network, address string) (net.Conn, error) {
	here := *r
	here.where = n.Where
	guarded := net.Dialer{ControlContext: fault.Control("outbound", here.control)}
	return fault.Dial("outbound", func(ctx context.Context, network, address string) (net.Conn, error) {
		host, port, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		if n.Router != nil && here.isOurs(host) {
			if own := n.Router(port); own != "" {
				return (&net.Dialer{}).DialContext(ctx, network, own)
			}
		}
		return guarded.DialContext(ctx, network, address)
	})
}

// control refuses to connect to an address that is out of reach. A name was
// resolved by then: it cannot change afterwards.
func (r *Rules) control(_ context.Context, _, address string, _ syscall.RawConn) error {
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

// isOurs reports whether a host is below one of the platform's domains.
func (r *Rules) isOurs(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	return slices.ContainsFunc(r.domains, func(d string) bool { return strings.HasSuffix(host, "."+d) })
}

// allows reports whether a rule lets apps connect to an address. No rule leads to
// the host's own loopback and links, whatever its range, and one for networks
// neither to the host nor to containers: networks are other machines.
func (r *Rules) allows(at netip.AddrPort) bool {
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
