package link

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"cupola/server/bosh/release"
	"cupola/server/bosh/tree"
)

// provide lists what a deployment's jobs offer.
func (r *resolver) provide() {
	for _, g := range r.in.Groups {
		for _, j := range g.Jobs {
			r.provideJob(g, j)
		}
	}
}

func (r *resolver) provideJob(g Group, j Job) {
	offered := slices.Clone(j.Release.Provides)
	for _, c := range j.Custom {
		offered = append(offered, release.Provided(c))
	}
	known := map[string]bool{}
	for _, p := range offered {
		known[p.Name] = true
		says := j.Provides[p.Name]
		if says.None {
			continue
		}
		r.offer(g, j, Provider{Name: p.Name, Alias: cmp.Or(says.As, p.Name), Type: p.Type, Shared: says.Shared}, p.Properties)
	}
	for _, name := range slices.Sorted(maps.Keys(j.Provides)) {
		if !known[name] {
			r.fault(g, "Job '%s' does not provide link '%s' in the release spec", j.Name, name)
		}
	}
}

func (r *resolver) offer(g Group, j Job, p Provider, properties []string) {
	values, order := map[string]any{}, &tree.Order{}
	for _, name := range properties {
		v, found := find(j.Properties, name)
		of := j.Order.At(name)
		if !found {
			declared, ok := j.Release.Properties[name]
			if !ok {
				r.fault(g, "Link property %s in template %s is not defined in release spec", name, j.Name)
				continue
			}
			v, of = declared.Default, declared.Order
		}
		release.Set(values, name, v)
		order.Put(name, of)
	}
	p.Deployment, p.Group, p.Job, p.networks = r.in.Name, g.Name, j.Name, g.Networks
	p.Link = Link{Address: g.Address, Properties: values, Order: order}
	for _, i := range g.Instances {
		i.Name, i.ID = g.Name, InstanceID(g.Name, j.Name, i.Index)
		p.Link.Instances = append(p.Link.Instances, i)
	}
	r.out.Providers = append(r.out.Providers, p)
}

func find(properties map[string]any, name string) (any, bool) {
	at := any(properties)
	for key := range strings.SplitSeq(name, ".") {
		m, _ := at.(map[string]any)
		next, ok := m[key]
		if !ok {
			return nil, false
		}
		at = next
	}
	return at, true
}

// String names the provider as BOSH does.
func (p Provider) String() string {
	s := fmt.Sprintf("Link provider '%s'", p.Name)
	if p.Alias != p.Name {
		s += fmt.Sprintf(" with alias '%s'", p.Alias)
	}
	return s + fmt.Sprintf(" from job '%s' in instance group '%s' in deployment '%s'", p.Job, p.Group, p.Deployment)
}

// InstanceID returns the ID of an instance of a group's job.
func InstanceID(group, job string, index int) string {
	return fmt.Sprintf("%s-%d-%s", group, index, job)
}
