package cnb

import (
	"fmt"
	"slices"

	"cupola/cmd/lifecycle/toml"
)

// plan is what a buildpack's detection says that it provides and requires.
type plan struct {
	sections
	Or []sections `json:"or,omitempty"` // alternatives, in order
}

type sections struct {
	Provides []provide `json:"provides,omitempty"`
	Requires []require `json:"requires,omitempty"`
}

type provide struct {
	Name string `json:"name"`
}

type require struct {
	Name     string         `json:"name"`
	Metadata map[string]any `json:"metadata,omitempty"`
	Version  string         `json:"version,omitempty"` // not allowed any longer
}

// readPlan reads the plan that a detection wrote.
func readPlan(file string) (p plan, err error) {
	if err := toml.ReadFile(file, &p); err != nil {
		return p, err
	}
	t, err := toml.ReadTable(file)
	if err != nil {
		return p, err
	}
	p.keepTypes(t)
	for i, or := range tables(t["or"]) {
		p.Or[i].keepTypes(or)
	}
	return p, p.check()
}

// keepTypes takes the metadata of requirements as it was written: a float that is whole
// stays a float, and a date a date.
func (s *sections) keepTypes(t toml.Table) {
	for i, r := range tables(t["requires"]) {
		if metadata, ok := r["metadata"].(toml.Table); ok {
			s.Requires[i].Metadata = metadata
		}
	}
}

// tables are those of an array of tables.
func tables(v any) (all []toml.Table) {
	list, _ := v.([]any)
	for _, item := range list {
		t, _ := item.(toml.Table)
		all = append(all, t)
	}
	return all
}

// planText is the plan that a buildpack's build gets.
func planText(requires []require) []byte {
	entries := []any{}
	for _, r := range requires {
		e := toml.Table{"name": r.Name}
		if r.Metadata != nil {
			e["metadata"] = r.Metadata
		}
		entries = append(entries, e)
	}
	return toml.Encode(toml.Table{"entries": entries})
}

// check refuses what buildpack APIs before 0.7 had.
func (p plan) check() error {
	for _, s := range append([]sections{p.sections}, p.Or...) {
		for _, r := range s.Requires {
			if r.Version != "" {
				return fmt.Errorf("its plan requires %q with the key \"version\", which is not supported: use \"metadata.version\"", r.Name)
			}
		}
	}
	return nil
}

// passed is a buildpack of a group that detected the app.
type passed struct {
	element
	buildpack *descriptor
	plan      plan
}

// option is one of the alternatives of a buildpack's plan.
type option struct {
	passed
	sections
}

func (p passed) options() []option {
	all := append([]sections{p.plan.sections}, p.plan.Or...)
	var options []option
	for i, s := range all {
		o := option{passed: p, sections: s}
		o.Optional = p.Optional && i == len(all)-1 // all its alternatives are tried before it is left out
		options = append(options, o)
	}
	return options
}

// entry is what several buildpacks need of several others.
type entry struct {
	name      string
	providers []string // IDs of buildpacks
	requires  []require
}

// resolved is a group whose plans fit.
type resolved struct {
	buildpacks []*descriptor
	entries    []entry
}

// resolve finds the first combination of the plans' alternatives that fits. The reason
// is that of the last one that does not.
func resolve(all []passed) (resolved, error) { return try(nil, all) }

func try(chosen []option, rest []passed) (resolved, error) {
	if len(rest) == 0 {
		return fit(chosen)
	}
	var last error
	for _, o := range rest[0].options() {
		found, err := try(append(slices.Clone(chosen), o), rest[1:])
		if err == nil {
			return found, nil
		}
		last = err
	}
	return resolved{}, last
}

// fit leaves optional buildpacks out until nothing is required that is not provided
// before, and nothing provided that is not required after.
func fit(trial []option) (resolved, error) {
	for {
		entries, bad, why := match(trial)
		if bad == nil && len(trial) == 0 {
			return resolved{}, fmt.Errorf("no buildpack is left: %s", "all were optional and had unmet plans")
		}
		if bad == nil {
			r := resolved{entries: entries}
			for _, o := range trial {
				r.buildpacks = append(r.buildpacks, o.buildpack)
			}
			return r, nil
		}
		if !bad.Optional {
			return resolved{}, fmt.Errorf("%s %s", bad.element, why)
		}
		trial = slices.DeleteFunc(slices.Clone(trial), func(o option) bool { return o.ID == bad.ID })
	}
}

// match joins what is provided with what is required. bad is a buildpack whose plan is not met.
func match(trial []option) (entries []entry, bad *option, why string) {
	unused := map[string][]*option{} // providers that nothing requires yet, by name
	index := map[string]int{}
	for i := range trial {
		o := &trial[i]
		for _, p := range o.Provides {
			unused[p.Name] = append(unused[p.Name], o)
		}
		for _, r := range o.Requires {
			at, ok := index[r.Name]
			if !ok && len(unused[r.Name]) == 0 {
				return nil, o, fmt.Sprintf("requires %q, which no buildpack before it provides", r.Name)
			}
			if !ok {
				at = len(entries)
				index[r.Name] = at
				entries = append(entries, entry{name: r.Name})
			}
			for _, provider := range unused[r.Name] {
				entries[at].providers = append(entries[at].providers, provider.ID)
			}
			delete(unused, r.Name)
			entries[at].requires = append(entries[at].requires, r)
		}
	}
	for i := range trial {
		for _, p := range trial[i].Provides {
			if slices.Contains(unused[p.Name], &trial[i]) {
				return nil, &trial[i], fmt.Sprintf("provides %q, which no buildpack requires", p.Name)
			}
		}
	}
	return entries, nil, ""
}

// planFor is what a buildpack gets of the plan: the entries that it may provide and
// that no earlier one met.
func planFor(entries []entry, id string) []require {
	requires := []require{}
	for _, e := range entries {
		if slices.Contains(e.providers, id) {
			requires = append(requires, e.requires...)
		}
	}
	return requires
}
