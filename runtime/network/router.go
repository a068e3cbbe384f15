package network

import (
	"net/netip"
	"slices"
)

// router is where the host's router listens.
type router struct {
	everywhere []PortRange      // at each address of the host
	at         []netip.AddrPort // at one
}

func newRouter(listens []netip.AddrPort) (r router) {
	for _, l := range listens {
		switch a := l.Addr().Unmap(); {
		case a.IsUnspecified():
			r.everywhere = append(r.everywhere, PortRange{l.Port(), l.Port()})
		case a.Is4() && !a.IsLoopback(): // that of a container is its own
			r.at = append(r.at, netip.AddrPortFrom(a, l.Port()))
		}
	}
	r.everywhere = mergePorts(r.everywhere)
	return r
}

// rules are those that open the router to whom a rule allows networks. Without a
// destination they are for each address of the host.
func (r router) rules(of Rule) (list []Rule) {
	if !of.sparesHost() || of.Protocol != "tcp" && of.Protocol != "all" {
		return nil
	}
	if len(r.everywhere) > 0 && of.isPublic() {
		list = append(list, Rule{Protocol: "tcp", Ports: r.everywhere, Log: of.Log})
	} else if len(r.everywhere) > 0 {
		list = append(list, Rule{Protocol: "tcp", Destinations: of.Destinations, Ports: r.everywhere, Log: of.Log})
	}
	for _, at := range r.at {
		in := func(d Range) bool { return !at.Addr().Less(d.From) && !d.To.Less(at.Addr()) }
		if of.isPublic() || slices.ContainsFunc(of.Destinations, in) {
			list = append(list, Rule{Protocol: "tcp", Destinations: []Range{{at.Addr(), at.Addr()}}, Ports: []PortRange{{at.Port(), at.Port()}}, Log: of.Log})
		}
	}
	return list
}

// isPublic reports whether a rule allows more than private networks.
func (r Rule) isPublic() bool {
	return slices.ContainsFunc(r.Destinations, func(d Range) bool { return !d.From.IsPrivate() || !d.To.IsPrivate() })
}
