package bosh

import (
	"cupola/server/bosh/erb"
	"cupola/server/bosh/link"
	"cupola/server/bosh/manifest"
)

// PlaceholderIP stands for an instance's address in files that are rendered
// before it is known.
const PlaceholderIP = "@@SPEC_IP@@"

// context is what the templates of a job see for an instance.
func (r *resolution) context(g *group, j *job, i manifest.Instance) *erb.Context {
	address := r.m.Names().Service(g.Name, i.Index)
	ip := PlaceholderIP
	if r.IP != nil {
		ip = r.IP(g.Name, i.Index)
	}
	networks := map[string]any{}
	network := func(name string, roles []string) {
		all := make([]any, len(roles))
		for n, role := range roles {
			all[n] = role
		}
		networks[name] = map[string]any{"ip": ip, "dns_record_name": address, "default": all, "type": "dynamic"}
	}
	for _, n := range g.Networks {
		network(n.Name, n.Default)
	}
	if len(networks) == 0 {
		network("default", []string{"dns", "gateway"})
	}
	az := any(nil)
	if i.AZ != "" {
		az = i.AZ
	}
	return &erb.Context{
		Properties: j.properties,
		Links:      r.links.Of[link.Consumer{Group: g.Name, Job: j.Name}],
		Spec: map[string]any{
			"name": link.InstanceName(g.Name, j.Name), "id": link.InstanceID(g.Name, j.Name, i.Index), "index": i.Index,
			"az": az, "bootstrap": i.Index == 0, "address": address, "ip": ip, "deployment": r.m.Name, "networks": networks,
			"job":             map[string]any{"name": j.Name},
			"release":         map[string]any{"name": j.Release, "version": j.version},
			"persistent_disk": g.PersistentDiskMB,
		},
	}
}
