package desire

import (
	"slices"
	"strings"

	"cupola/runtime/lrp"
	"cupola/store/cf"
)

// constraint is what a placement asks of cells. An isolation segment is a tag
// of that name, which nothing else may be on, but for what a pool sends there.
func constraint(p cf.Placement) lrp.Constraint {
	c := lrp.Constraint{Require: slices.Clone(p.Require), Disallow: slices.Clone(p.Disallow)}
	has := func(list []string, tag string) bool {
		return slices.ContainsFunc(list, func(t string) bool { return strings.EqualFold(t, tag) })
	}
	if p.Segment != "" && !has(c.Require, p.Segment) {
		c.Require = append(c.Require, p.Segment)
	}
	for _, other := range p.Others {
		if !has(c.Require, other) && !has(c.Disallow, other) {
			c.Disallow = append(c.Disallow, other)
		}
	}
	return c
}
