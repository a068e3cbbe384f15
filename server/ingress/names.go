package ingress

import (
	"net/netip"
	"slices"
	"strings"

	"cupola/runtime/lrp"
	"cupola/server/databroker"
	"cupola/server/desire"
	"cupola/server/dns"
)

// names are what the routes in internal domains lead to, the instances of the
// built-in service broker, and those of deployments.
func (r *rows) names(zones []string, names map[string][]*lrp.Actual) dns.Table {
	t := dns.Table{Zones: zones, Hosts: make(map[string][]dns.Host, len(names)), Names: map[string]bool{}}
	for name, instances := range names {
		for _, i := range instances {
			if a, err := netip.ParseAddr(i.Address); err == nil && a.Is4() {
				t.Hosts[name] = append(t.Hosts[name], dns.Host{Address: a, Index: i.Index})
			}
		}
	}
	t.Zones = append(t.Zones, databroker.Zone)
	for name, address := range databroker.Hosts(r.databases, r.instances) {
		if a, err := netip.ParseAddr(address); err == nil {
			t.Hosts[name] = []dns.Host{{Address: a}}
		}
	}
	r.deployments.add(&t, r.instances)
	return t
}

// certified turns names around. A name that no certificate can have is left out.
func certified(names map[string][]*lrp.Actual) map[string][]string {
	of := map[string][]string{}
	for name, instances := range names {
		if strings.ContainsFunc(name, func(c rune) bool { return c <= ' ' || c > '~' }) {
			continue
		}
		for _, i := range instances {
			if !slices.Contains(of[i.InstanceGUID], name) {
				of[i.InstanceGUID] = append(of[i.InstanceGUID], name)
			}
		}
	}
	for _, list := range of {
		slices.Sort(list)
	}
	return of
}

// internalNames are the internal domains, and by the names in them that routes
// have the instances that a route would lead to. All are in lower case.
func (r *rows) internalNames() (zones []string, names map[string][]*lrp.Actual) {
	domains, names := map[string]string{}, map[string][]*lrp.Actual{}
	for _, d := range r.domains {
		if d.Internal {
			domains[d.GUID] = strings.ToLower(d.Name)
			zones = append(zones, domains[d.GUID])
		}
	}
	var served map[service][]*lrp.Actual
	for _, of := range r.routes {
		zone, ok := domains[of.DomainGUID]
		if !ok {
			continue
		}
		if served == nil {
			served = r.served()
		}
		name, seen := strings.ToLower(of.Host)+"."+zone, map[service]bool{}
		for _, to := range of.Destinations {
			s := service{to.AppGUID, desire.ProcessType(to)}
			if !seen[s] { // by several ports
				names[name] = append(names[name], served[s]...)
			}
			seen[s] = true
		}
	}
	addDesiredNames(names, zones, r.desired, r.instances)
	return zones, names
}
