package disk

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"cupola/rootfs/tree"
	"cupola/server/admin/lowwater"
)

func unusedAt(name string, bytes int64, age int) tree.Unused {
	return tree.Unused{Name: name, Bytes: bytes, Used: time.Unix(1_000_000-int64(age), 0)}
}

func TestTheLongestUnusedGoFirst(t *testing.T) {
	all := []entry{{unusedAt("young", 5, 1), images}, {unusedAt("old", 5, 9), unpacked}, {unusedAt("middle", 5, 5), images}}
	for need, want := range map[int64][]string{0: {"old", "middle", "young"}, 1: {"old"}, 5: {"old"}, 6: {"old", "middle"}, 100: {"old", "middle", "young"}} {
		var got []string
		for _, e := range choose(all, need) {
			got = append(got, e.Name)
		}
		if !slices.Equal(got, want) {
			t.Errorf("for %d bytes: got %q; want %q", need, got, want)
		}
	}
	names, sum := namesIn(choose(all, 0), images)
	if !slices.Equal(names, []string{"middle", "young"}) || sum.Count != 2 || sum.Bytes != 10 || !sum.Oldest.Equal(all[1].Used) || sum.Newest.Before(sum.Oldest) {
		t.Errorf("got %q, %+v", names, sum)
	}
}

func TestACacheThatCannotBeReadStopsNoOther(t *testing.T) {
	broken := errors.New("broken")
	lists := func(name string, all []tree.Unused, err error) cache {
		return cache{name: name, unused: func(context.Context) ([]tree.Unused, error) { return all, err }}
	}
	all, err := unusedOf(t.Context(), []cache{lists("a", nil, broken), lists("b", []tree.Unused{unusedAt("x", 1, 1)}, nil)})
	if len(all) != 1 || err != nil {
		t.Errorf("got %v, %v; want what can be read", all, err)
	}
	if _, err := unusedOf(t.Context(), []cache{lists("a", nil, broken)}); !errors.Is(err, broken) {
		t.Errorf("got %v; want %v", err, broken)
	}
}

func TestSizeOfAReclaim(t *testing.T) {
	for text, want := range map[string]int64{"": 0, "2G": 2 << 30, "1.5MB": 3 << 19} {
		if got, err := (ReclaimRequest{Size: text}).need(); err != nil || got != want {
			t.Errorf("%q: got %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"2", "-1G", "0G", "much"} {
		if _, err := (ReclaimRequest{Size: text}).need(); err == nil || err.Error() != fmt.Sprintf("invalid --size %q: give a size, like 2G", text) {
			t.Errorf("%q: got %v", text, err)
		}
	}
}

// TestLowWaterMark is the default one where none is given, and follows one that changes.
func TestLowWaterMark(t *testing.T) {
	const total = 100 << 30
	k := &Keeper{}
	if got := k.lowWater(total); got != total/20 {
		t.Errorf("got %d; want 5 %%", got)
	}
	text := "off"
	k.Mark = func() lowwater.Mark { m, _ := lowwater.Parse(text); return m }
	if got := k.lowWater(total); got != 0 {
		t.Errorf("got %d; want none", got)
	}
	if text = "2G"; k.lowWater(total) != 2<<30 {
		t.Errorf("got %d; want the new mark", k.lowWater(total))
	}
}
