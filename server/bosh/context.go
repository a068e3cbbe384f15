package bosh

import (
	"cupola/server/bosh/bpm"
	"cupola/server/bosh/erb"
	"cupola/server/bosh/link"
	"cupola/server/bosh/manifest"
)

// context is what the templates of a job see for an instance.
func (r *resolution) context(g *group, j *job, i manifest.Instance) *erb.Context {
	address := r.m.Names().Service(g.Name, i.Index)
	ip := bpm.AddressMark
	if r.IP != nil {
		ip = r.IP(g.Name, i.Index)
	}
	networks := map[string]any{}
	network := func(name string, roles []string) {
		all := make([]any, len(roles))
		for n, role := range roles {
			all[n] = role
		}
		// The gateway is the director's for an address that it does not know, either
		// (bosh-director: deployment_plan/instance_spec.rb).
		networks[name] = map[string]any{"ip": ip, "netmask": "255.255.255.255", "gateway": "127.0.0.1", "dns_record_name": address,
			"default": all, "type": "dynamic", "cloud_properties": map[string]any{}}
	}
	both := []string{"dns", "gateway"} // what an only network is the default for
	for _, n := range g.Networks {
		if len(g.Networks) == 1 && n.Default == nil {
			n.Default = both
		}
		network(n.Name, n.Default)
	}
	if len(networks) == 0 {
		network("default", both)
	}
	az := any(nil)
	if i.AZ != "" {
		az = i.AZ
	}
	return &erb.Context{
		Properties: j.properties, Order: j.order,
		Links: r.links.Of[link.Consumer{Group: g.Name, Job: j.Name}],
		Spec: map[string]any{
			"name": g.Name, "id": link.InstanceID(g.Name, j.Name, i.Index), "index": i.Index,
			"az": az, "bootstrap": i.Index == 0, "address": address, "ip": ip, "deployment": r.m.Name, "networks": networks,
			"job":             map[string]any{"name": g.Name}, // the director's old word for an instance group
			"release":         map[string]any{"name": j.Release, "version": j.version},
			"persistent_disk": g.PersistentDiskMB,
		},
	}
}
