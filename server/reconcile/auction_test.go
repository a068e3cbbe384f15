package reconcile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"cupola/runtime/lrp"
)

// seedCells are nine cells with the tags of the proposal of placement pools.
func seedCells() []CellState {
	tags := [][]string{{"staging", "skynet"}, {"staging", "skynet"}, {"staging"}, {"staging"},
		{"production", "skynet"}, {"production", "skynet"}, {"production"}, {"production"}, {"skynet"}}
	var cells []CellState
	for n, t := range tags {
		cells = append(cells, CellState{Cell: lrp.Cell{ID: fmt.Sprint("cell-", n+1), Tags: t, MemoryMB: 100, DiskMB: 1000, Containers: 10, RootFSes: []string{"lucid64"}}})
	}
	return cells
}

// landings places so many instances, one after the other, and tells on which
// cells they are and why others are not.
func landings(cells []CellState, d lrp.Desired) (on []string, errors []string) {
	for _, a := range Plan(World{Cells: cells, Desired: []lrp.Desired{d}}) {
		switch a.Op {
		case Start:
			on = append(on, strings.TrimPrefix(a.CellID, "cell-"))
		case Deny:
			errors = append(errors, a.Reason)
		}
	}
	slices.Sort(on)
	return on, slices.Compact(errors)
}

func TestEachConstraintHasItsCells(t *testing.T) {
	for _, test := range []struct {
		require, disallow []string
		want              string
		err               string
	}{
		{nil, nil, "1 2 3 4 5 6 7 8 9", ""},
		{[]string{"staging"}, nil, "1 2 3 4", ""},
		{nil, []string{"production"}, "1 2 3 4 9", ""},
		{[]string{"staging", "skynet"}, nil, "1 2", ""},
		{[]string{"STAGING", "SkyNet"}, nil, "1 2", ""},
		{[]string{"staging"}, []string{"skynet"}, "3 4", ""},
		{[]string{"staging"}, []string{"staging"}, "", `found no compatible cell with placement tag "staging" and without placement tag "staging"`},
		{[]string{"alfalfa"}, nil, "", `found no compatible cell with placement tag "alfalfa"`},
		{[]string{"a", "b"}, nil, "", `found no compatible cell with placement tags "a" and "b"`},
		{[]string{"a", "b", "c"}, nil, "", `found no compatible cell with placement tags "a", "b" and "c"`},
		{nil, []string{"staging", "production", "skynet"}, "", `found no compatible cell without placement tags "staging", "production" and "skynet"`},
	} {
		d := desired("p", 1, 60)
		d.RootFS, d.Constraint = "preloaded://lucid64", lrp.Constraint{Require: test.require, Disallow: test.disallow}
		want := strings.Fields(test.want)
		d.Instances = max(len(want), 1) // as many as there are cells: one goes to each
		on, errors := landings(seedCells(), d)
		if !slices.Equal(on, want) || strings.Join(errors, "; ") != test.err {
			t.Errorf("require %v, disallow %v: got cells %v, %v; want %v, %q", test.require, test.disallow, on, errors, want, test.err)
		}
		if len(want) == 0 {
			continue
		}
		d.Instances++ // and those without room get that as the reason, and no other
		on, errors = landings(seedCells(), d)
		if !slices.Equal(on, want) || !slices.Equal(errors, []string{"insufficient resources: memory"}) {
			t.Errorf("require %v, disallow %v: got cells %v, %v; want them full", test.require, test.disallow, on, errors)
		}
	}
}

// TestCellsThatRequireTags holds Diego's rule (rep: resources.go,
// MatchPlacementTags) and text.
func TestCellsThatRequireTags(t *testing.T) {
	for _, test := range []struct {
		require []string
		want    string
	}{
		{nil, "2"},
		{[]string{"GPU"}, "1"},
		{[]string{"gpu", "fast"}, "1"},
		{[]string{"fast"}, `found no compatible cell with placement tag "fast"`},
	} {
		cells := seedCells()[:2]
		cells[0].Tags, cells[0].RequiredTags, cells[1].Tags = []string{"gpu", "fast"}, []string{"gpu"}, nil
		d := desired("p", 1, 60)
		d.RootFS, d.Constraint.Require = "preloaded:lucid64", test.require
		on, errors := landings(cells, d)
		if got := strings.Join(append(on, errors...), " "); got != test.want {
			t.Errorf("%v: got %s; want %s", test.require, got, test.want)
		}
	}
	cells := seedCells()[:1]
	cells[0].RequiredTags = cells[0].Tags
	d := desired("p", 1, 60)
	d.RootFS = "preloaded:lucid64"
	if _, errors := landings(cells, d); !slices.Equal(errors, []string{"found no compatible cell with no placement tags"}) {
		t.Errorf("got %v", errors)
	}
}

// TestStagingsOfClusters are placed where stagings are, though their constraint names a cell that stages nothing; other tasks are not.
func TestStagingsOfClusters(t *testing.T) {
	cells := seedCells()[:3]
	cells[2].Tags, cells[2].RequiredTags, cells[2].NoStaging = []string{"edge"}, []string{"edge"}, true
	for _, test := range []struct {
		domain  string
		require []string
		tagged  bool // the second cell has the tag, too
		silent  bool // the third does not answer
		want    string
	}{
		{lrp.DomainStaging, nil, false, false, "cell-1"},
		{lrp.DomainStaging, []string{"edge"}, false, false, "cell-1"},
		{lrp.DomainStaging, []string{"edge"}, false, true, "cell-1"},
		{lrp.DomainStaging, []string{"edge"}, true, false, "cell-2"},
		{lrp.DomainStaging, []string{"other"}, false, false, `found no compatible cell with placement tag "other"`},
		{lrp.DomainTasks, []string{"edge"}, false, false, "cell-3"},
		{lrp.DomainTasks, []string{"edge"}, false, true, "unable to communicate to compatible cells"},
		{lrp.DomainTasks, []string{"other"}, false, true, `found no compatible cell with placement tag "other"`},
	} {
		cells[1].Tags, cells[2].Unreachable = nil, test.silent
		if test.tagged {
			cells[1].Tags = []string{"edge"}
		}
		w := World{Now: noon, Cells: cells, Tasks: []lrp.Task{task("t", func(t *lrp.Task) { t.Domain = test.domain })},
			Work: []Work{{GUID: "t", Domain: test.domain, Run: lrp.RunInfo{RootFS: "preloaded:lucid64", MemoryMB: 10, Constraint: lrp.Constraint{Require: test.require}}}}}
		got := ""
		for _, a := range Plan(w) {
			got += a.CellID + a.Reason
		}
		if got != test.want {
			t.Errorf("%s with %v: got %q; want %q", test.domain, test.require, got, test.want)
		}
	}
}

// TestZonesGetAsMany holds Diego's rule (auction: auctionrunner/scheduler.go):
// the zone with the fewest instances comes first, whatever its cells' scores.
func TestZonesGetAsMany(t *testing.T) {
	zoned := func(zones ...string) []CellState {
		cells := seedCells()[:len(zones)]
		for i, z := range zones {
			cells[i].Zone = z
		}
		return cells
	}
	for _, test := range []struct {
		cells     []CellState
		memoryMB  int
		instances int
		want      string
	}{
		{zoned("a", "a", "a", "b"), 10, 4, "1 2 4 4"},
		{zoned("a", "a", "b", "b"), 10, 4, "1 2 3 4"},
		{zoned("a", "a", "a", "b"), 60, 4, "1 2 3 4"}, // b is full after one
		{zoned("a", "b", "c"), 10, 2, "1 2"},
	} {
		d := desired("p", test.instances, test.memoryMB)
		d.RootFS = "preloaded:lucid64"
		on, errors := landings(test.cells, d)
		if strings.Join(on, " ") != test.want || len(errors) > 0 {
			t.Errorf("%d instances of %d MB: got cells %v, %v; want %s", test.instances, test.memoryMB, on, errors, test.want)
		}
	}
	d := desired("p", 3, 60)
	d.RootFS = "preloaded:lucid64"
	if on, errors := landings(zoned("a", "b"), d); len(on) != 2 || !slices.Equal(errors, []string{"insufficient resources: memory"}) {
		t.Errorf("got %v, %v; want one instance without a cell", on, errors)
	}
}

func TestWhatSuitsACell(t *testing.T) {
	cells := seedCells()[:2]
	cells[0].RootFSes, cells[0].RootFSProviders = []string{"lucid64", "cflinuxfs2"}, []string{"docker"}
	cells[1].RootFSes, cells[1].VolumeDrivers = []string{"cflinuxfs2"}, []string{"nfsv3driver"}
	for _, test := range []struct {
		rootFS, driver, tag string
		want                string
	}{
		{"preloaded:lucid64", "", "", "1"},
		{"preloaded://lucid64", "", "", "1"},
		{"precached:lucid64", "", "", "1"},
		{"preloaded:cflinuxfs2", "", "", "1 2"},
		{"docker:///foo/bar#baz", "", "", "1"},
		{"docker://host/foo/bar:baz", "", "", "1"},
		{"oci:/foo", "", "", "found no compatible cell for required rootfs"},
		{"preloaded:other", "none", "alfalfa", "found no compatible cell for required rootfs"},
		{"preloaded:cflinuxfs2", "nfsv3driver", "", "2"},
		{"preloaded:lucid64", "nfsv3driver", "alfalfa", "found no compatible cell with required volume drivers"},
		{"preloaded:lucid64", "", "alfalfa", `found no compatible cell with placement tag "alfalfa"`},
	} {
		d := desired("p", 1, 60)
		d.RootFS = test.rootFS
		if test.driver != "" {
			d.VolumeDrivers = []string{test.driver}
		}
		if test.tag != "" {
			d.Constraint.Require = []string{test.tag}
		}
		if d.Instances = strings.Count(test.want, " ") + 1; strings.HasPrefix(test.want, "found") {
			d.Instances = 1
		}
		on, errors := landings(cells, d)
		if got := strings.Join(append(on, errors...), " "); got != test.want {
			t.Errorf("%s, driver %q, tag %q: got %s; want %s", test.rootFS, test.driver, test.tag, got, test.want)
		}
	}
	if on, errors := landings(nil, desired("p", 1, 1)); len(on) != 0 || !slices.Equal(errors, []string{"unable to communicate to compatible cells"}) {
		t.Errorf("got %v, %v; want to be told that there is no cell", on, errors)
	}
}

func TestTheImageIsWhereItRunsAlready(t *testing.T) {
	cells := seedCells()[:3]
	for i := range cells {
		cells[i].RootFSProviders = []string{"docker"}
	}
	other := has("x", lrp.PhaseRunning, 40)
	other.RootFS = "docker:///foo/bar"
	cells[2].Containers = []lrp.ContainerStatus{other}
	w := World{Cells: cells, Tasks: []lrp.Task{{GUID: "x", State: lrp.TaskRunning}}, Work: []Work{{GUID: "x", Run: lrp.RunInfo{MemoryMB: 40}}}}
	for _, test := range []struct{ rootFS, want string }{{"docker:///foo/bar", "3"}, {"docker:///other", "1"}, {"preloaded:lucid64", "1"}} {
		d := desired("p", 1, 10)
		d.RootFS = test.rootFS
		w.Desired = []lrp.Desired{d}
		for _, a := range Plan(w) {
			if a.Op == Start && a.CellID != "cell-"+test.want {
				t.Errorf("%s is placed on %s; want cell-%s", test.rootFS, a.CellID, test.want)
			}
		}
	}
}

// plainly is choose without what makes it fast.
func plainly(a *auction, p *placement) (best *offer, waits bool, reason string) {
	cells, mismatch := suitable(a.cells, p.run)
	if mismatch != "" {
		return nil, false, mismatch
	}
	n, of := p.need(), a.processes[p.actual.ProcessGUID]
	score := func(o *offer) float64 {
		s := o.score(p.task != nil) + sameProcess*float64(of.count(o))
		if strings.HasPrefix(p.run.RootFS, "docker") && !o.images[p.run.RootFS] {
			s += coldPenalty
		}
		return s
	}
	first := func(room func(*offer) resources) *offer {
		fit := slices.DeleteFunc(slices.Clone(cells), func(o *offer) bool { return !room(o).holds(n) })
		if len(fit) == 0 {
			return nil
		}
		return slices.MinFunc(fit, func(o, q *offer) int { return cmp.Compare(score(o), score(q)) })
	}
	if o := first(func(o *offer) resources { return o.free }); o != nil {
		return o, false, ""
	}
	later := slices.DeleteFunc(slices.Clone(cells), func(o *offer) bool { return o.leaving == resources{} })
	cells = later
	if o := first(func(o *offer) resources { return o.free.plus(o.leaving) }); o != nil {
		return o, true, ""
	}
	cells, _ = suitable(a.cells, p.run)
	return nil, false, insufficient(cells, n)
}

func TestTheFastAuctionChoosesLikeThePlainOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := func(name string, most int) int { return rapid.IntRange(0, most).Draw(t, name) }
		var cells []*offer
		for i := range rapid.IntRange(1, 12).Draw(t, "cells") {
			o := &offer{order: 2 * i, // those that go leave gaps
				images: map[string]bool{}, starting: size("starting", 2), tasks: size("tasks", 2), leaving: resources{memory: size("leaving", 1) * size("leaving MB", 100)},
				cell: lrp.Cell{ID: fmt.Sprint(i), MemoryMB: 100 + size("memory", 400), DiskMB: 400, Containers: 2 + size("containers", 10), RootFSes: []string{"a"}, RootFSProviders: []string{"docker"}}}
			o.free = resources{o.cell.MemoryMB - o.leaving.memory - size("used", 100), o.cell.DiskMB, o.cell.Containers}
			if rapid.Bool().Draw(t, "tagged") {
				o.cell.Tags = []string{"x"}
			}
			if rapid.Bool().Draw(t, "warm") {
				o.images["docker:///i"] = true
			}
			cells = append(cells, o)
		}
		a := newAuction(cells)
		var places []*placement
		for range rapid.IntRange(1, 40).Draw(t, "places") {
			c := &lrp.RunInfo{MemoryMB: 10 * size("MB", 6), DiskMB: size("disk", 60)}
			p := &placement{run: c}
			p.actual.ProcessGUID = fmt.Sprint(size("process", 2))
			c.RootFS = rapid.SampledFrom([]string{"preloaded:a", "docker:///i"}).Draw(t, "rootfs")
			if rapid.IntRange(0, 4).Draw(t, "kind") == 0 {
				p.task, p.actual.ProcessGUID = &lrp.Task{}, ""
			}
			if rapid.IntRange(0, 2).Draw(t, "constrained") == 0 {
				c.Constraint.Require = []string{"x"}
			}
			places = append(places, p)
			a.enter(p)
		}
		for _, p := range places {
			want, wantWaits, wantReason := plainly(a, p)
			got, waits, reason := a.choose(p)
			if got != want || waits != wantWaits || (reason == "") != (wantReason == "") {
				t.Fatalf("got %v, %t, %q; want %v, %t, %q", got, waits, reason, want, wantWaits, wantReason)
			}
			if got != nil {
				a.take(got, p)
			}
		}
	})
}
