package network

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Rule allows connections as a rule of a CF security group does.
type Rule struct {
	// Protocol is tcp, udp, icmp or all.
	Protocol string
	// Destinations are IPv4 ranges. One that only touches the containers' subnet
	// does not open it: to allow another container, a range must lie inside it.
	// Nor does a range open the host, wherever its addresses are, unless the rule
	// names ports: networks are other machines.
	Destinations []Range
	// Ports bound tcp and udp; none means all.
	Ports []PortRange
	// ICMPType and ICMPCode bound icmp; -1 means all, as in CF.
	ICMPType, ICMPCode int
	// Log makes the kernel log each new connection.
	Log bool
}

// Range is all addresses from From to To, both included.
type Range struct{ From, To netip.Addr }

// PortRange is all ports from From to To, both included.
type PortRange struct{ From, To uint16 }

// Prefixes are the blocks of addresses that together are the range, in order.
func (r Range) Prefixes() (all []netip.Prefix) {
	for from := r.From; from.IsValid() && !r.To.Less(from); {
		block := netip.PrefixFrom(from, from.BitLen())
		for block.Bits() > 0 {
			wider := netip.PrefixFrom(from, block.Bits()-1)
			if wider.Masked().Addr() != from || r.To.Less(rangeOf(wider).To) {
				break
			}
			block = wider
		}
		all = append(all, block)
		from = rangeOf(block).To.Next()
	}
	return all
}

// sparesHost reports whether the rule allows whole networks, and so not the host.
func (r Rule) sparesHost() bool {
	return len(r.Ports) == 0 && slices.ContainsFunc(r.Destinations, func(d Range) bool { return d.From != d.To })
}

// ParseDestination reads the destination of a CF security group rule: an
// address, a CIDR block or "from-to", or several of them with commas.
func ParseDestination(s string) ([]Range, error) {
	var all []Range
	for part := range strings.SplitSeq(s, ",") {
		r, err := parseRange(strings.TrimSpace(part))
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}

func parseRange(s string) (Range, error) {
	var r Range
	from, to, isRange := strings.Cut(s, "-")
	if prefix, err := netip.ParsePrefix(s); err == nil {
		r = rangeOf(prefix)
	} else if r.From, err = netip.ParseAddr(strings.TrimSpace(from)); err != nil {
		return Range{}, fmt.Errorf("parse destination %q: not an address, CIDR block or range", s)
	} else if r.To = r.From; isRange {
		if r.To, err = netip.ParseAddr(strings.TrimSpace(to)); err != nil {
			return Range{}, fmt.Errorf("parse destination %q: not an address, CIDR block or range", s)
		}
	}
	if !r.From.Is4() || !r.To.Is4() {
		return Range{}, fmt.Errorf("parse destination %q: only IPv4 is supported", s)
	}
	if r.To.Less(r.From) {
		return Range{}, fmt.Errorf("parse destination %q: the range ends before it starts", s)
	}
	return r, nil
}

// rangeOf returns the addresses of a block.
func rangeOf(p netip.Prefix) Range {
	p = p.Masked()
	if !p.Addr().Is4() {
		return Range{p.Addr(), p.Addr()}
	}
	last := p.Addr().As4()
	for bit := p.Bits(); bit < 32; bit++ {
		last[bit/8] |= 1 << (7 - bit%8)
	}
	return Range{p.Addr(), netip.AddrFrom4(last)}
}

// ParsePorts reads the ports of a CF security group rule: "443", "80,443" or
// "8080-8090".
func ParsePorts(s string) ([]PortRange, error) {
	var all []PortRange
	for part := range strings.SplitSeq(s, ",") {
		from, to, isRange := strings.Cut(part, "-")
		if !isRange {
			to = from
		}
		first, err := strconv.ParseUint(strings.TrimSpace(from), 10, 16)
		last, err2 := strconv.ParseUint(strings.TrimSpace(to), 10, 16)
		if err != nil || err2 != nil || first == 0 || last < first {
			return nil, fmt.Errorf("parse ports %q: not ports from 1 to 65535", s)
		}
		all = append(all, PortRange{uint16(first), uint16(last)})
	}
	return all, nil
}

// within keeps rules for the world from opening the containers' own subnet.
func within(ranges []Range, subnet Range) []Range {
	var all []Range
	for _, r := range ranges {
		inside := !r.From.Less(subnet.From) && !subnet.To.Less(r.To)
		apart := r.To.Less(subnet.From) || subnet.To.Less(r.From)
		if inside || apart {
			all = append(all, r)
			continue
		}
		if r.From.Less(subnet.From) {
			all = append(all, Range{r.From, subnet.From.Prev()})
		}
		if subnet.To.Less(r.To) {
			all = append(all, Range{subnet.To.Next(), r.To})
		}
	}
	return merge(all)
}

// merge sorts ranges and joins those that touch, as the kernel demands.
func merge(ranges []Range) []Range {
	slices.SortFunc(ranges, func(a, b Range) int {
		return cmp.Or(a.From.Compare(b.From), a.To.Compare(b.To))
	})
	var all []Range
	for _, r := range ranges {
		n := len(all)
		if n > 0 && (!all[n-1].To.Less(r.From) || all[n-1].To.Next() == r.From) {
			if all[n-1].To.Less(r.To) {
				all[n-1].To = r.To
			}
			continue
		}
		all = append(all, r)
	}
	return all
}

func mergePorts(ports []PortRange) []PortRange {
	ports = slices.Clone(ports)
	slices.SortFunc(ports, func(a, b PortRange) int { return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To)) })
	var all []PortRange
	for _, p := range ports {
		n := len(all)
		if n > 0 && int(p.From) <= int(all[n-1].To)+1 {
			all[n-1].To = max(all[n-1].To, p.To)
			continue
		}
		all = append(all, p)
	}
	return all
}
