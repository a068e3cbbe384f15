package debian

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// A provision is a package that offers a virtual name; version is empty unless
// the offer is a versioned one.
type provision struct {
	by      *available
	version string
}

// A catalog answers what a set of indexes offers: the newest version of every
// name, and who provides what.
type catalog struct {
	byName   map[string]*available
	provides map[string][]provision
}

// newCatalog keeps the newest version of each name; of equal versions that of
// the earlier index.
func newCatalog(indexes ...[]*available) (*catalog, error) {
	c := &catalog{byName: make(map[string]*available), provides: make(map[string][]provision)}
	for _, index := range indexes {
		for _, a := range index {
			if best := c.byName[a.name]; best == nil || compareVersions(a.version, best.version) > 0 {
				c.byName[a.name] = a
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.byName)) {
		a := c.byName[name]
		offers, err := parseClauses(a.provides)
		if err != nil {
			return nil, fmt.Errorf("provides of %s: %w", a.name, err)
		}
		for _, offer := range offers {
			r := offer[0]
			c.provides[r.name] = append(c.provides[r.name], provision{a, r.version})
		}
	}
	return c, nil
}

// satisfiers lists the packages that satisfy r: the one of that name, then the
// providers by name. An unversioned offer satisfies only an unversioned dependency.
func (c *catalog) satisfiers(r relation) []*available {
	var all []*available
	if a := c.byName[r.name]; a != nil && r.allows(a.version) {
		all = append(all, a)
	}
	for _, p := range c.provides[r.name] {
		if r.op == "" || p.version != "" && r.allows(p.version) {
			all = append(all, p.by)
		}
	}
	return all
}

// A resolver grows a set of packages that is closed under dependency. It never
// goes back on a choice, and the same catalog gives the same set.
type resolver struct {
	catalog *catalog
	prefer  []string
	without []string // patterns of names that count as there
	chosen  map[string]*available
	reason  map[string]string // name of the package that asked, "" for a root
	queue   []*available
}

// selection describes a set of packages: which to install, which to prefer among
// alternatives, and which to take as installed.
type selection struct{ packages, prefer, without []string }

// resolve returns the essential packages, those wanted and all they depend on, by name.
func resolve(c *catalog, w selection) ([]*available, error) {
	r := &resolver{catalog: c, prefer: w.prefer, without: w.without, chosen: make(map[string]*available), reason: make(map[string]string)}
	for _, name := range slices.Sorted(maps.Keys(c.byName)) {
		if a := c.byName[name]; a.essential {
			r.choose(a, "")
		}
	}
	var missing []string
	for _, name := range w.packages {
		if found := c.satisfiers(relation{name: name}); len(found) > 0 {
			r.choose(found[0], "")
		} else {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("the suite has no package %s", strings.Join(missing, ", "))
	}
	for len(r.queue) > 0 {
		a := r.queue[0]
		r.queue = r.queue[1:]
		if err := r.follow(a); err != nil {
			return nil, err
		}
	}
	return r.result()
}

func (r *resolver) choose(a *available, reason string) {
	if r.chosen[a.name] == nil {
		r.chosen[a.name], r.reason[a.name] = a, reason
		r.queue = append(r.queue, a)
	}
}

// follow satisfies every clause of a's dependencies.
func (r *resolver) follow(a *available) error {
	clauses, err := parseClauses(a.depends)
	if err != nil {
		return fmt.Errorf("depends of %s: %w", a.name, err)
	}
	for _, c := range clauses {
		pick := r.pick(c)
		if pick == nil {
			return fmt.Errorf("nothing in the suite satisfies %q of %s", c, r.chain(a.name))
		}
		if !r.omits(pick.name) {
			r.choose(pick, a.name)
		}
	}
	return nil
}

// omits reports whether a package is not to be there whatever depends on it.
func (r *resolver) omits(name string) bool {
	return slices.ContainsFunc(r.without, func(pattern string) bool {
		ok, err := path.Match(pattern, name)
		return ok && err == nil
	})
}

// pick takes what is chosen already, else what is preferred, else the first that
// there is.
func (r *resolver) pick(c clause) *available {
	var first, preferred *available
	for _, rel := range c {
		for _, a := range r.catalog.satisfiers(rel) {
			if r.chosen[a.name] == a {
				return a
			}
			if preferred == nil && slices.Contains(r.prefer, a.name) {
				preferred = a
			}
			if first == nil {
				first = a
			}
		}
	}
	if preferred != nil {
		return preferred
	}
	return first
}

// chain says why a package is in the set: "libb (wanted by a)".
func (r *resolver) chain(name string) string {
	text := name
	for by := r.reason[name]; by != ""; by = r.reason[by] {
		text += " (wanted by " + by + ")"
	}
	return text
}

// result refuses a set that contradicts itself.
func (r *resolver) result() ([]*available, error) {
	names := slices.Sorted(maps.Keys(r.chosen))
	set := make([]*available, len(names))
	for i, name := range names {
		set[i] = r.chosen[name]
	}
	for _, a := range set {
		clauses, err := parseClauses(a.conflicts)
		if err != nil {
			return nil, fmt.Errorf("conflicts of %s: %w", a.name, err)
		}
		for _, c := range clauses {
			for _, other := range r.catalog.satisfiers(c[0]) {
				if other != a && r.chosen[other.name] == other {
					return nil, fmt.Errorf("%s conflicts with %s by %q", r.chain(a.name), r.chain(other.name), c)
				}
			}
		}
	}
	return set, nil
}
