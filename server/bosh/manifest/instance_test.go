package manifest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestInstancesOverAZs(t *testing.T) {
	g := &InstanceGroup{AZs: []string{"z1", "z2"}, Instances: 3}
	want := []Instance{{"z1", 1, 0, 0}, {"z2", 2, 0, 1}, {"z1", 1, 1, 2}}
	if diff := cmp.Diff(want, g.All()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	g.AZs = nil
	if diff := cmp.Diff([]Instance{{"", 1, 0, 0}, {"", 1, 1, 1}, {"", 1, 2, 2}}, g.All()); diff != "" {
		t.Errorf("without AZs (-want +got):\n%s", diff)
	}
	g.AZs, g.Instances = []string{"z1", "z2", "z3"}, 1
	if diff := cmp.Diff([]Instance{{"z1", 1, 0, 0}}, g.All()); diff != "" {
		t.Errorf("fewer than AZs (-want +got):\n%s", diff)
	}
}

// TestPlacement holds what others rely on: all instances are there, with indexes from 0 on
// and ordinals from 0 on in each AZ; no AZ has two more than another, the first ones have
// most; and one instance more or less moves no other.
func TestPlacement(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		g := &InstanceGroup{Name: "db", Instances: rapid.IntRange(0, 40).Draw(rt, "instances")}
		for n := range rapid.IntRange(0, 9).Draw(rt, "azs") {
			g.AZs = append(g.AZs, fmt.Sprint("z", n))
		}
		if rapid.Bool().Draw(rt, "randomize") {
			g.shuffle = "cf"
		}
		all, counts := g.All(), make([]int, max(len(g.AZs), 1))
		if len(all) != g.Instances {
			rt.Fatalf("got %d instances; want %d", len(all), g.Instances)
		}
		for index, i := range all {
			if i.Index != index || i.Ordinal != counts[i.AZIndex-1] || len(g.AZs) > 0 && i.AZ != g.AZs[i.AZIndex-1] {
				rt.Fatalf("got %+v at %d; want its index, the ordinal %d, and the AZ of its place", i, index, counts[i.AZIndex-1])
			}
			counts[i.AZIndex-1]++
		}
		if slices.Max(counts)-slices.Min(counts) > 1 {
			rt.Fatalf("got %d in the AZs; want equally many", counts)
		}
		if g.shuffle == "" && !slices.IsSortedFunc(counts, func(a, b int) int { return b - a }) {
			rt.Fatalf("got %d in the AZs; want those left over in the first", counts)
		}
		g.Instances++
		if diff := cmp.Diff(all, g.All()[:len(all)]); diff != "" {
			rt.Fatalf("one more moves others (-before +after):\n%s", diff)
		}
	})
}

// TestRandomizedAZs finds that groups of one deployment differ in where their only
// instance is, and that the order of the list has no influence.
func TestRandomizedAZs(t *testing.T) {
	at := func(name string, azs ...string) string {
		m, found := Parse([]byte("name: cf\nfeatures: {randomize_az_placement: true}\ninstance_groups:\n- {name: " + name + ", instances: 1, azs: [" + azs[0] + ", " + azs[1] + ", " + azs[2] + "]}\n"))
		if err := found.Err(); err != nil {
			t.Fatal(err)
		}
		return m.InstanceGroups[0].All()[0].AZ
	}
	count := map[string]int{}
	for n := range 60 {
		name := fmt.Sprint("group", n)
		az := at(name, "z1", "z2", "z3")
		if again := at(name, "z3", "z1", "z2"); again != az {
			t.Errorf("%s: got %s and %s", name, az, again)
		}
		count[az]++
	}
	for _, az := range []string{"z1", "z2", "z3"} {
		if count[az] < 8 {
			t.Errorf("got %v; want about 20 of 60 groups in each AZ", count)
		}
	}
}
