package manifest

import (
	"cmp"
	"crypto/sha256"
	"slices"
	"strings"
)

// Instance is one instance of a group.
type Instance struct {
	AZ      string // "" when the group has none
	AZIndex int    // place of the AZ in the group's list, from 1; 1 when the group has none
	Ordinal int    // within its AZ, from 0
	Index   int    // within the group, from 0
}

// All returns the group's instances by index.
func (g *InstanceGroup) All() []Instance { return g.Places(g.Instances) }

// Places returns the instances that a group of a size has, by index. They take the AZs in
// turn: no AZ has two more than another, and those left over are in the first ones. Where
// an instance is depends only on its index, so none moves when the group grows or shrinks.
func (g *InstanceGroup) Places(n int) []Instance {
	azs := g.turns()
	all := make([]Instance, n)
	for index := range all {
		at := azs[index%len(azs)]
		at.Ordinal, at.Index = index/len(azs), index
		all[index] = at
	}
	return all
}

// turns returns an Instance for each AZ, in the order in which instances take them.
func (g *InstanceGroup) turns() []Instance {
	if len(g.AZs) == 0 {
		return []Instance{{AZIndex: 1}}
	}
	all := make([]Instance, len(g.AZs))
	for n, az := range g.AZs {
		all[n] = Instance{AZ: az, AZIndex: n + 1}
	}
	if g.shuffle != "" {
		slices.SortFunc(all, func(a, b Instance) int { return cmp.Compare(g.lot(a.AZ), g.lot(b.AZ)) })
	}
	return all
}

// lot orders AZs for a shuffled group. Each deploy draws the same.
func (g *InstanceGroup) lot(az string) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{g.shuffle, g.Name, az}, "\x00")))
	return string(sum[:])
}
