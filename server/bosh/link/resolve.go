package link

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"cupola/server/bosh/manifest"
	"cupola/server/bosh/release"
)

// Resolve finds the links of all jobs. The error has a line for all that is
// wrong; what could be resolved is returned besides it.
func Resolve(in Deployment) (Links, error) {
	r := &resolver{in: in, out: Links{Of: map[Consumer]map[string]Link{}}}
	r.provide()
	for _, g := range in.Groups {
		for _, j := range g.Jobs {
			r.consumeJob(g, j)
		}
	}
	return r.out, errors.Join(r.faults...)
}

type resolver struct {
	in     Deployment
	out    Links
	faults []error
}

func (r *resolver) fault(g Group, format string, args ...any) {
	r.faults = append(r.faults, fmt.Errorf("instance group %q: %s", g.Name, fmt.Sprintf(format, args...)))
}

func (r *resolver) consumeJob(g Group, j Job) {
	links, known := map[string]Link{}, map[string]bool{}
	for _, c := range j.Release.Consumes {
		known[c.Name] = true
		if l, ok := r.consume(g, j, c); ok {
			links[c.Name] = l
		}
	}
	for _, name := range slices.Sorted(maps.Keys(j.Consumes)) {
		if !known[name] {
			r.fault(g, "Job '%s' does not define consumer '%s' in the release spec", j.Name, name)
		}
	}
	r.out.Of[Consumer{g.Name, j.Name}] = links
}

func (r *resolver) consume(g Group, j Job, c release.Consumed) (Link, bool) {
	says := j.Consumes[c.Name]
	if says.Manual {
		return manual(says), true
	}
	var found []Provider
	if !says.None {
		candidates, ok := r.candidates(g, j, c, says)
		if !ok {
			return Link{}, false
		}
		found = matching(candidates, c, says)
	}
	switch {
	case len(found) == 1:
		if says.Deployment != "" && says.Deployment != r.in.Name {
			r.foreign(Foreign{says.Deployment, cmp.Or(says.From, c.Name), c.Type})
		}
		return found[0].Link, true
	case len(found) > 1:
		names := make([]string, len(found))
		for i, p := range found {
			names[i] = p.String()
		}
		r.fault(g, "multiple providers of type '%s' for link '%s' in job '%s': %s", c.Type, c.Name, j.Name, strings.Join(names, "; "))
	case !c.Optional || says.From != "":
		r.fault(g, "cannot resolve non-optional link for provider %s in job %s%s", c.Name, j.Name, r.suggest(c, says))
	}
	return Link{}, false
}

func (r *resolver) foreign(f Foreign) {
	if !slices.Contains(r.out.Foreign, f) {
		r.out.Foreign = append(r.out.Foreign, f)
	}
}

// candidates are the providers of the deployment that the manifest names.
func (r *resolver) candidates(g Group, j Job, c release.Consumed, says manifest.Consume) ([]Provider, bool) {
	if says.Deployment == "" || says.Deployment == r.in.Name {
		return r.out.Providers, true
	}
	var all []Provider
	exists := false
	if r.in.Shared != nil {
		all, exists = r.in.Shared(says.Deployment)
	}
	if !exists {
		r.fault(g, "Link '%s' in job '%s' from instance group '%s' consumes from deployment '%s', but the deployment does not exist.",
			c.Name, j.Name, g.Name, says.Deployment)
	}
	return slices.DeleteFunc(slices.Clone(all), func(p Provider) bool { return !p.Shared }), exists
}

// matching picks by type, and by name where the manifest gives one; another
// deployment may have many of a type, so there the link's own name is meant.
func matching(candidates []Provider, c release.Consumed, says manifest.Consume) (found []Provider) {
	name := says.From
	if name == "" && says.Deployment != "" {
		name = c.Name
	}
	for _, p := range candidates {
		switch {
		case p.Type != c.Type:
		case name != "" && name != p.Alias && name != p.Name:
		case says.Network != "" && len(p.networks) > 0 && !slices.Contains(p.networks, says.Network):
		default:
			found = append(found, p)
		}
	}
	// An alias is more than a name that many jobs may give alike.
	if byAlias := slices.DeleteFunc(slices.Clone(found), func(p Provider) bool { return p.Alias != name }); name != "" && len(byAlias) > 0 {
		return byAlias
	}
	return found
}

// suggest returns a hint about similar links for one that is not found.
func (r *resolver) suggest(c release.Consumed, says manifest.Consume) string {
	if says.None {
		return ": the manifest gives nil for it"
	}
	var names []string
	for _, p := range r.out.Providers {
		if p.Type == c.Type {
			names = append(names, fmt.Sprintf("%q", p.Alias))
		}
	}
	text := fmt.Sprintf(": nothing provides type %q", c.Type)
	if says.From != "" {
		text += fmt.Sprintf(" as %q", says.From)
	}
	if names != nil {
		text += fmt.Sprintf("; there is %s", strings.Join(names, ", "))
	}
	return text
}

func manual(says manifest.Consume) Link {
	l := Link{Address: says.Address, Properties: says.Properties, Order: says.Order}
	if l.Properties == nil {
		l.Properties = map[string]any{}
	}
	for _, i := range says.Instances {
		l.Instances = append(l.Instances, Instance{Name: i.Name, ID: i.ID, Address: i.Address, AZ: i.AZ, Index: i.Index, Bootstrap: i.Bootstrap})
	}
	if l.Address == "" && len(l.Instances) > 0 {
		l.Address = l.Instances[0].Address
	}
	return l
}
