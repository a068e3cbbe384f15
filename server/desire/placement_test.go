package desire

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"cupola/runtime/lrp"
	"cupola/store/cf"
)

func TestConstraintOfAPlacement(t *testing.T) {
	for _, test := range []struct {
		name string
		p    cf.Placement
		want lrp.Constraint
	}{
		{"nothing", cf.Placement{}, lrp.Constraint{}},
		{"a pool", cf.Placement{Pool: "p", Require: []string{"staging"}, Disallow: []string{"skynet"}}, lrp.Constraint{Require: []string{"staging"}, Disallow: []string{"skynet"}}},
		{"a segment", cf.Placement{Segment: "Iso"}, lrp.Constraint{Require: []string{"Iso"}}},
		{"others' segments", cf.Placement{Others: []string{"a", "b"}}, lrp.Constraint{Disallow: []string{"a", "b"}}},
		{"a pool that sends to a segment", cf.Placement{Require: []string{"A"}, Others: []string{"a", "b"}}, lrp.Constraint{Require: []string{"A"}, Disallow: []string{"b"}}},
		{"a pool and a segment", cf.Placement{Require: []string{"iso"}, Segment: "ISO", Others: []string{"b"}}, lrp.Constraint{Require: []string{"iso"}, Disallow: []string{"b"}}},
	} {
		if diff := cmp.Diff(test.want, constraint(test.p)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}
