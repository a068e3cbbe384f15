package cells

import (
	"slices"
	"strings"
	"testing"
)

// TestLeads holds which placement pools lead to a cell, and to no other.
func TestLeads(t *testing.T) {
	laptop, edge, gpu := cellView{ID: "cupola"}, cellView{ID: "edge", Tags: []string{"edge"}, Required: []string{"edge"}}, cellView{ID: "gpu", Tags: []string{"GPU", "fast"}}
	for _, c := range []struct {
		name    string
		cells   []cellView
		segment string
		pool    poolView
		want    []string // the cells that it leads to alone
	}{
		{"no pool, where the other cell requires a tag", []cellView{laptop, edge}, "", poolView{}, []string{"cupola"}},
		{"the tag", []cellView{laptop, edge}, "", poolView{Require: []string{"EDGE"}}, []string{"edge"}},
		{"the segment", []cellView{laptop, edge}, "edge", poolView{}, []string{"edge"}},
		{"a pool against the segment", []cellView{laptop, edge}, "edge", poolView{Disallow: []string{"edge"}}, nil},
		{"another space's segment", []cellView{laptop, gpu}, "not gpu", poolView{}, []string{"cupola"}},
		{"another space's segment, which the pool requires", []cellView{laptop, gpu}, "not gpu", poolView{Require: []string{"gpu"}}, []string{"gpu"}},
		{"no pool, and two cells that suit", []cellView{laptop, edge, gpu}, "", poolView{}, nil},
		{"what one has", []cellView{laptop, edge, gpu}, "", poolView{Require: []string{"gpu"}}, []string{"gpu"}},
		{"what one has not", []cellView{laptop, edge, gpu}, "", poolView{Disallow: []string{"Fast"}}, []string{"cupola"}},
		{"what none has", []cellView{laptop, edge, gpu}, "", poolView{Require: []string{"arm"}}, nil},
	} {
		var got []string
		for _, to := range c.cells {
			m := &move{cells: c.cells, to: to}
			switch other, isOther := strings.CutPrefix(c.segment, "not "); {
			case isOther:
				m.others = []string{other}
			case c.segment != "":
				m.segment = []string{c.segment}
			}
			if m.leads(c.pool) {
				got = append(got, to.ID)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: leads to %v; want %v", c.name, got, c.want)
		}
	}
}
