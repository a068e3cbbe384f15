package container

import (
	"os"
	"path/filepath"
	"testing"
)

// grouped is a bench with groups.
func grouped(t *testing.T, kind Kind, groups ...Group) *bench {
	t.Helper()
	b := newBench(t, kind)
	b.cfg.Groups = groups
	b.Engine = b.reopen(t)
	return b
}

func TestGroupBoundsItsContainers(t *testing.T) { eachKind(t, testGroupBoundsItsContainers) }

func testGroupBoundsItsContainers(t *testing.T, kind Kind) {
	b := grouped(t, kind, Group{Name: "small", MemoryBytes: 48 << 20, CPUShares: 64}, Group{Name: "big", MemoryBytes: 1 << 30})
	for group, killed := range map[string]bool{"small": true, "big": false, "": false} {
		spec := b.spec("hog-"+group, "hog", "96")
		spec.Group = group
		_, exit := b.output(t, spec)
		if exit.OOM != killed {
			t.Errorf("group %q: got %+v; want killed for memory: %t", group, exit, killed)
		}
	}
}

func TestGroupedContainerIsAdopted(t *testing.T) { eachKind(t, testGroupedContainerIsAdopted) }

func testGroupedContainerIsAdopted(t *testing.T, kind Kind) {
	b := grouped(t, kind, Group{Name: "one"})
	spec := b.spec("app", "sleep")
	spec.Group = "one"
	started, r := b.start(t, spec)
	waitLine(t, r, "ready\n")
	b.cfg.Groups = []Group{{Name: "other"}} // one is not wanted any longer
	second := b.reopen(t)
	if states, err := second.List(); err != nil || len(states) != 1 || states[0] != started {
		t.Fatalf("got %+v, %v; want %+v", states, err, started)
	}
	if s, err := second.Stats("app"); err != nil || s.Pids == 0 {
		t.Errorf("got %+v, %v; want its processes counted", s, err)
	}
	if err := second.Remove(t.Context(), "app"); err != nil {
		t.Fatal(err)
	}
	b.Engine = b.reopen(t)
	for _, dir := range b.tree.dirs(groupMark + "one") {
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%s is left", dir)
		}
	}
	for _, dir := range b.tree.dirs("") {
		if _, err := os.Stat(filepath.Join(dir, groupMark+"other")); err != nil {
			t.Error(err)
		}
	}
}

func TestGroupWithoutRoomIsNotEnded(t *testing.T) { eachKind(t, testGroupWithoutRoomIsNotEnded) }

func testGroupWithoutRoomIsNotEnded(t *testing.T, kind Kind) {
	b := grouped(t, kind, Group{Name: "one"})
	spec := b.spec("app", "sleep")
	spec.Group = "one"
	_, r := b.start(t, spec)
	waitLine(t, r, "ready\n")
	b.cfg.Groups = []Group{{Name: "one", MemoryBytes: 4096}}
	second := b.reopen(t)
	if states, err := second.List(); err != nil || len(states) != 1 || !states[0].Alive {
		t.Errorf("got %+v, %v; want it alive", states, err)
	}
}
