package lrp

import (
	"slices"
	"strings"
)

// MaxTagLength bounds the tag of a cell, in bytes: a tag is shorter than 64.
const MaxTagLength = 63

// Constraint says which cells may run a workload, by their tags. Tags compare
// without case. The zero value allows every cell. The constraint of a Desired
// or a Task never changes.
type Constraint struct {
	Require  []string // the cell has all of these
	Disallow []string // and none of these
}

// Allows reports whether a cell with these tags may run the workload.
func (c Constraint) Allows(tags []string) bool {
	has := func(tag string) bool {
		return slices.ContainsFunc(tags, func(t string) bool { return strings.EqualFold(t, tag) })
	}
	for _, tag := range c.Require {
		if !has(tag) {
			return false
		}
	}
	return !slices.ContainsFunc(c.Disallow, has)
}
