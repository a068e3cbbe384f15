package manifest

import (
	"fmt"
	"slices"
	"strings"

	"cupola/runtime/pattern"
)

// aliasesJob is the job whose property "aliases" gives instances further names
// in DNS. Nothing runs of it: it needs no image.
const aliasesJob = "bosh-dns-aliases"

// Alias is a name in DNS that leads to instances, as the job bosh-dns-aliases
// has it.
type Alias struct {
	// Domain is in lower case. "_." at its beginning stands for the name of each
	// instance.
	Domain  string
	Targets []AliasTarget
}

// AliasTarget says which instances an alias leads to. Group and Deployment may
// begin or end with *. There is one network here, and no domain of BOSH's own.
type AliasTarget struct {
	Query             string // "*", "_" or "q-" and criteria
	Group, Deployment string
}

// Health says which instances a query is for.
type Health byte

// The values of the criterion s of a query.
const (
	Smart     Health = '0' // the healthy ones, or all when there is none
	Unhealthy Health = '1'
	Healthy   Health = '3'
	All       Health = '4'
)

// Query is what a target asks for.
type Query struct {
	Each    bool // the instance that the alias was asked with in place of _
	Health  Health
	Indexes []string // of instances; none is any
}

// criteria are those of queries of bosh-dns that mean something here: s, i, and
// y, which says when health is looked at first.
var criteria = pattern.Lazy(`^q-([siy][0-9]+)+$`)

var criterion = pattern.Lazy(`([a-z])([0-9]+)`)

// Parsed reads the target's query.
func (t AliasTarget) Parsed() (q Query, err error) {
	q.Health = Smart
	switch {
	case t.Query == "*":
	case t.Query == "_":
		q.Each = true
	case !criteria().MatchString(t.Query):
		return q, fmt.Errorf("query %q is none that is answered here; give *, _, or q- with the criteria s (0, 1, 3 or 4) and i (an index), like q-s3", cut(t.Query, 60))
	default:
		for _, c := range criterion().FindAllStringSubmatch(t.Query, -1) {
			switch {
			case c[1] == "i":
				q.Indexes = append(q.Indexes, c[2])
			case c[1] == "s" && !slices.Contains([]string{"0", "1", "3", "4"}, c[2]):
				return q, fmt.Errorf("query %q asks for health %s; it is 0 (smart), 1 (unhealthy), 3 (healthy) or 4 (all)", cut(t.Query, 60), cut(c[2], 10))
			case c[1] == "s":
				q.Health = Health(c[2][0])
			}
		}
	}
	return q, nil
}

// Matches reports whether the target means an instance group of a deployment.
func (t AliasTarget) Matches(deployment, group string) bool {
	return globs(t.Deployment, deployment) && globs(t.Group, group)
}

// globs compares names as bosh-dns does.
func globs(pattern, name string) bool {
	pattern, name = canonical(pattern), canonical(name)
	if end, ok := strings.CutPrefix(pattern, "*"); ok {
		return strings.HasSuffix(name, end)
	}
	if begin, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(name, begin)
	}
	return pattern == name
}

var uncanonical = pattern.Lazy(`[^a-z0-9*-]`)

func canonical(name string) string {
	return uncanonical().ReplaceAllString(strings.ReplaceAll(strings.ToLower(name), "_", "-"), "")
}

// Aliases are the names in DNS that the deployment gives: by the job
// bosh-dns-aliases of groups, and of addons that are placed anywhere, and by the
// links that jobs provide.
func (m *Manifest) Aliases() (all []Alias) {
	for _, a := range m.Addons {
		if slices.ContainsFunc(m.InstanceGroups, func(g *InstanceGroup) bool { return m.placedOn(a, g) }) {
			all = append(all, m.aliasesOf(a.Jobs)...)
		}
	}
	for _, g := range m.InstanceGroups {
		all = append(all, m.aliasesOf(g.Jobs)...)
		for _, j := range g.Jobs {
			for _, p := range j.Provides {
				for _, a := range p.Aliases {
					all = append(all, a.alias(m.Name, g.Name))
				}
			}
		}
	}
	slices.SortStableFunc(all, func(a, b Alias) int { return strings.Compare(a.Domain, b.Domain) })
	return all
}

func (m *Manifest) aliasesOf(jobs []*Job) (all []Alias) {
	for _, j := range jobs {
		if j.Name == aliasesJob {
			of, _ := j.aliases(m.Name) // lint reports their faults
			all = append(all, of...)
		}
	}
	return all
}

// aliases reads the property of the job bosh-dns-aliases. The faults begin with
// where they are, below the property.
func (j *Job) aliases(deployment string) (all []Alias, faults []error) {
	list, ok := j.Properties["aliases"].([]any)
	if !ok {
		return nil, []error{fmt.Errorf(": expected a list of aliases, each with domain and targets")}
	}
	for n, item := range list {
		values, _ := item.(map[string]any)
		a := Alias{Domain: domainName(values["domain"])}
		if err := checkDomain(a.Domain); err != nil {
			faults = append(faults, fmt.Errorf("/%d: %w", n, err))
		}
		targets, _ := values["targets"].([]any)
		if len(targets) == 0 {
			faults = append(faults, fmt.Errorf("/%d: the alias has no targets; give a list of query, instance_group, deployment and network", n))
		}
		for k, target := range targets {
			t, err := aliasTarget(target, deployment)
			if each := strings.HasPrefix(a.Domain, "_."); err == nil && each != (t.Query == "_") && !variableText().MatchString(t.Query+a.Domain) {
				err = fmt.Errorf("query _ belongs to domains that begin with _., and these have no other")
			}
			if err != nil {
				faults = append(faults, fmt.Errorf("/%d/targets/%d: %w", n, k, err))
			}
			a.Targets = append(a.Targets, t)
		}
		all = append(all, a)
	}
	return all, faults
}

func aliasTarget(v any, deployment string) (t AliasTarget, err error) {
	values, _ := v.(map[string]any)
	text := func(key string) string { s, _ := values[key].(string); return s }
	t = AliasTarget{Query: text("query"), Group: text("instance_group"), Deployment: text("deployment")}
	switch {
	case variableText().MatchString(t.Query + t.Group + t.Deployment):
		return t, nil
	case t.Query == "" || t.Group == "":
		return t, fmt.Errorf("the target needs query and instance_group")
	case t.Deployment == "":
		t.Deployment = deployment
	}
	_, err = t.Parsed()
	return t, err
}

// domainRule is that of names in DNS, and of "_." and one.
var domainRule = pattern.Lazy(`^(_\.)?([a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

func domainName(v any) string {
	s, _ := v.(string)
	return strings.TrimSuffix(strings.ToLower(s), ".")
}

func checkDomain(domain string) error {
	if variableText().MatchString(domain) || len(domain) <= 253 && domainRule().MatchString(domain) {
		return nil
	}
	return fmt.Errorf("%q is not a valid DNS name", cut(domain, 60))
}

// LinkAlias is a name that a job gives with a link that it provides.
type LinkAlias struct {
	At
	Domain string
	Filter string // health_filter: smart, healthy, unhealthy or all; "" is smart
	Each   bool   // placeholder_type: _ in the domain stands for each instance
}

// filters are the criteria that BOSH's health filters are.
var filters = map[string]Health{"": Smart, "smart": Smart, "healthy": Healthy, "unhealthy": Unhealthy, "all": All}

func linkAlias(o *object) LinkAlias {
	defer o.done()
	a := LinkAlias{At: o.At, Domain: domainName(o.text("domain")), Filter: o.text("health_filter"), Each: o.text("placeholder_type") != ""}
	o.text("initial_health_check")
	return a
}

func (a LinkAlias) alias(deployment, group string) Alias {
	t := AliasTarget{Query: "q-s" + string(rune(filters[a.Filter])), Group: group, Deployment: deployment}
	if a.Each {
		t.Query = "_"
	}
	return Alias{Domain: a.Domain, Targets: []AliasTarget{t}}
}

// check returns the alias' fault, or nil.
func (a LinkAlias) check() error {
	_, known := filters[a.Filter]
	switch {
	case !known && !variableText().MatchString(a.Filter):
		return fmt.Errorf("health_filter is smart, healthy, unhealthy or all, not %q", cut(a.Filter, 60))
	case a.Each && !strings.HasPrefix(a.Domain, "_.") && !variableText().MatchString(a.Domain):
		return fmt.Errorf("with placeholder_type the domain begins with _., for which each instance has its own name")
	}
	return checkDomain(a.Domain)
}
