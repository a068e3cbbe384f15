package ingress

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"cupola/runtime/lrp"
	"cupola/server/bosh/link"
	"cupola/server/bosh/manifest"
	"cupola/server/dns"
	"cupola/store"
	"cupola/store/cf"
)

// deployments are the names by which instances of deployments find each other.
type deployments struct {
	all       []*cf.BOSHDeployment
	instances []*cf.BOSHInstance
	aliases   []manifest.Alias // of all deployments; of two of one domain the first holds
}

func (b *deployments) load(tx *store.Tx) (err error) {
	if b.all, err = store.BOSHDeployments.All(tx); err != nil || len(b.all) == 0 {
		return err
	}
	for _, d := range b.all {
		var of []manifest.Alias
		if len(d.Aliases) == 0 {
			continue
		}
		if err := json.Unmarshal(d.Aliases, &of); err != nil {
			if err := store.BOSHDeployments.LeaveOut(tx, d, d.GUID, fmt.Errorf("aliases: %w", err)); err != nil {
				return err
			}
			continue
		}
		b.aliases = append(b.aliases, of...)
	}
	b.instances, err = store.BOSHInstances.All(tx)
	return err
}

// clusterZone is where Kubernetes has the names of services: rendered there, a
// deployment has the same.
const clusterZone = "svc.cluster.local"

// add adds the instances that run and are ready, each by its own name and by its
// group's, and what aliases lead to.
func (b *deployments) add(t *dns.Table, actuals []*lrp.Actual) {
	if len(b.all) == 0 {
		return
	}
	t.Zones = append(t.Zones, clusterZone)
	var all []boshHost
	for _, d := range b.all {
		names := manifest.Names{Deployment: d.Name}
		for _, i := range b.instances {
			if i.DeploymentGUID != d.GUID || i.Lifecycle != string(manifest.Service) {
				continue
			}
			own, group := names.Service(i.Group, i.Index), names.Group(i.Group)
			for _, name := range []string{own, group} {
				if !slices.Contains(t.Zones, name) {
					t.Zones = append(t.Zones, name)
				}
			}
			h, ok := hostOf(d.Name, i, actuals)
			if !ok {
				continue
			}
			all = append(all, h)
			if h.ready {
				nameHosts(t, own, []dns.Host{h.Host})
			}
		}
	}
	for _, group := range grouped(all) {
		ready := slices.DeleteFunc(slices.Clone(group), func(h boshHost) bool { return !h.ready })
		nameHosts(t, manifest.Names{Deployment: group[0].deployment}.Group(group[0].group), serving(ready))
	}
	b.addAliases(t, all)
}

// nameHosts gives hosts a name, and the one that it is in Kubernetes.
func nameHosts(t *dns.Table, name string, hosts []dns.Host) {
	if len(hosts) > 0 {
		t.Hosts[name] = append(t.Hosts[name], hosts...)
		t.Hosts[name+".default."+clusterZone] = t.Hosts[name]
	}
}

// boshHost is an instance that has an address.
type boshHost struct {
	dns.Host
	deployment, group, guid string
	jobs                    []string
	ready                   bool     // all processes run and are ready
	role                    lrp.Role // in its group
}

// hostOf is an instance that has an address. It is passive when one of its
// processes is.
func hostOf(deployment string, i *cf.BOSHInstance, actuals []*lrp.Actual) (h boshHost, ok bool) {
	h = boshHost{deployment: deployment, group: i.Group, guid: i.GUID,
		ready: i.Phase == cf.BOSHRunning || i.Phase == cf.BOSHPostStart || i.Phase == cf.BOSHStarting}
	address := ""
	for _, a := range actuals {
		if a.Owner.GUID != i.GUID {
			continue
		}
		job, _, _ := strings.Cut(a.Owner.Part, "/")
		h.jobs = append(h.jobs, job)
		h.ready = h.ready && a.Routable()
		if a.Address != "" {
			address = a.Address
		}
		if h.role != lrp.Passive && a.Role != lrp.NoRole {
			h.role = a.Role
		}
	}
	addr, err := netip.ParseAddr(address)
	h.Host = dns.Host{Address: addr, Index: i.Index}
	return h, err == nil
}

// grouped are the hosts of each group.
func grouped(all []boshHost) (groups [][]boshHost) {
	at := map[[2]string]int{}
	for _, h := range all {
		key := [2]string{h.deployment, h.group}
		n, ok := at[key]
		if !ok {
			n = len(groups)
			at[key], groups = n, append(groups, nil)
		}
		groups[n] = append(groups[n], h)
	}
	return groups
}

// serving are the hosts that the name of their group leads to: all, or, where
// they have roles, the active one; of several that call themselves active the
// first.
func serving(group []boshHost) (some []dns.Host) {
	one := slices.ContainsFunc(group, func(h boshHost) bool { return h.role != lrp.NoRole })
	for _, h := range group {
		switch {
		case one && h.role == lrp.Passive:
		case one && len(some) > 0:
			if h.Index < some[0].Index {
				some[0] = h.Host
			}
		default:
			some = append(some, h.Host)
		}
	}
	return some
}

// addAliases adds what aliases lead to, but for names that are taken.
func (b *deployments) addAliases(t *dns.Table, all []boshHost) {
	hosts := map[string][]dns.Host{}
	given := map[string]bool{}
	for _, a := range b.aliases {
		if given[a.Domain] {
			continue
		}
		given[a.Domain] = true
		base, each := strings.CutPrefix(a.Domain, "_.")
		if each {
			t.Zones = append(t.Zones, base)
		} else {
			t.Names[a.Domain] = true
		}
		for _, target := range a.Targets {
			q, err := target.Parsed()
			of := slices.DeleteFunc(slices.Clone(all), func(h boshHost) bool { return !target.Matches(h.deployment, h.group) })
			switch {
			case err != nil || q.Each != each: // lint has reported it
			case each:
				for _, h := range of {
					for _, label := range h.ids() {
						hosts[label+"."+base] = []dns.Host{h.Host}
					}
				}
			default:
				hosts[a.Domain] = append(hosts[a.Domain], asked(q, of)...)
			}
		}
	}
	for name, to := range hosts {
		if len(t.Hosts[name]) == 0 {
			t.Hosts[name] = to
		}
	}
}

// ids are what an instance is known by in place of _: its GUID, and the ID that
// the templates of its jobs see.
func (h boshHost) ids() []string {
	all := []string{strings.ToLower(h.guid), manifest.Sanitize(h.group + "-" + strconv.Itoa(h.Index))}
	for _, job := range h.jobs {
		all = append(all, manifest.Sanitize(link.InstanceID(h.group, job, h.Index)))
	}
	return all
}

// asked are the hosts that a query is for. Which instance is asked for by its
// index has it, whatever its role.
func asked(q manifest.Query, all []boshHost) (some []dns.Host) {
	all = slices.DeleteFunc(slices.Clone(all), func(h boshHost) bool {
		return q.Indexes != nil && !slices.Contains(q.Indexes, strconv.Itoa(h.Index))
	})
	healthy := slices.DeleteFunc(slices.Clone(all), func(h boshHost) bool { return !h.ready })
	switch {
	case q.Health == manifest.Healthy, q.Health == manifest.Smart && len(healthy) > 0:
		all = healthy
	case q.Health == manifest.Unhealthy:
		all = slices.DeleteFunc(all, func(h boshHost) bool { return h.ready })
	}
	for _, group := range grouped(all) {
		if q.Indexes != nil {
			for n := range group {
				group[n].role = lrp.NoRole
			}
		}
		some = append(some, serving(group)...)
	}
	return some
}
