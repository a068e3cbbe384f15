package boshapi

import (
	"maps"
	"slices"
	"strings"

	"cupola/server/bosh/manifest"
	"cupola/store"
)

// stackVersion is the version of a stemcell that is a stack: stacks have none.
const stackVersion = "0"

// listStemcells lists the stacks, as stemcells of the OS that they stand for, and the
// stemcells that deployments name.
func listStemcells(c *call) (*answer, error) {
	stacks, err := store.Stacks.Matching(c.tx, store.Query{})
	if err != nil {
		return nil, err
	}
	all := []doc{}
	for _, s := range stacks {
		os := s.Name
		for _, of := range slices.Sorted(maps.Keys(c.Stemcells)) {
			if c.Stemcells[of] == s.Name {
				os = of
			}
		}
		all = append(all, doc{"name": s.Name, "operating_system": os, "version": stackVersion, "cid": "stack " + s.Name, "cpi": "", "deployments": []doc{}})
	}
	used, err := c.usedStemcells()
	if err != nil {
		return nil, err
	}
	for _, of := range slices.SortedFunc(maps.Keys(used), func(a, b manifest.Stemcell) int { return strings.Compare(a.OS+" "+a.Version, b.OS+" "+b.Version) }) {
		all = append(all, doc{"name": of.OS, "operating_system": of.OS, "version": of.Version, "cid": "", "cpi": "", "deployments": used[of]})
	}
	return ok(all)
}

// usedStemcells are the stemcells that manifests name, with the deployments.
func (c *call) usedStemcells() (map[manifest.Stemcell][]doc, error) {
	rows, err := store.BOSHDeployments.Matching(c.tx, store.Query{Order: "name"})
	used := map[manifest.Stemcell][]doc{}
	for _, d := range rows {
		m, _ := manifest.Parse(d.Manifest)
		for _, s := range m.Stemcells {
			of := manifest.Stemcell{OS: s.OS, Version: s.Version}
			used[of] = append(used[of], doc{"name": d.Name})
		}
	}
	return used, err
}

// needsStemcell reports whether a stemcell would have to be uploaded: not if there is a
// stack for its OS.
func needsStemcell(c *call) (*answer, error) {
	var req struct {
		Stemcell struct{ Name, Version string }
	}
	if err := c.decode(&req); err != nil {
		return nil, err
	}
	name := req.Stemcell.Name
	stacks, err := store.Stacks.Matching(c.tx, store.Query{})
	if err != nil {
		return nil, err
	}
	for _, s := range stacks {
		if named(name, s.Name) || slices.ContainsFunc(slices.Collect(maps.Keys(c.Stemcells)), func(os string) bool { return c.Stemcells[os] == s.Name && named(name, os) }) {
			return ok(doc{"needed": false})
		}
	}
	return ok(doc{"needed": true})
}

// named reports whether the name of a stemcell is that of an OS, or has it as a part:
// bosh-warden-boshlite-ubuntu-jammy-go_agent has ubuntu-jammy.
func named(stemcell, os string) bool {
	return stemcell == os || strings.Contains("-"+stemcell+"-", "-"+os+"-")
}
