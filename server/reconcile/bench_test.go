package reconcile

import (
	"context"
	"fmt"
	"testing"
	"time"

	"cupola/runtime/lrp"
	"cupola/store"
	"cupola/store/cf"
)

func BenchmarkPlan(b *testing.B) {
	w := World{Now: time.Now(), Cells: []CellState{{Cell: lrp.Cell{ID: "c", MemoryMB: 1 << 20, DiskMB: 1 << 20, Containers: 2000, RootFSes: []string{"minifs"}}}}}
	for i := range 1000 {
		d := desired(fmt.Sprintf("p-%d", i), 1, 64)
		w.Desired = append(w.Desired, d)
		w.Actuals = append(w.Actuals, row(d.ProcessGUID, 0, lrp.Running, fmt.Sprintf("i-%d", i)))
		w.Cells[0].Containers = append(w.Cells[0].Containers, has(fmt.Sprintf("i-%d", i), lrp.PhaseRunning, 64))
	}
	for b.Loop() {
		if as := Plan(w); len(as) > 0 {
			b.Fatal(as)
		}
	}
}

func BenchmarkStep(b *testing.B) {
	s, err := store.Open(store.Config{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	c := newFakeCell("c")
	c.presence.MemoryMB, c.presence.Containers, c.presence.DiskMB = 1<<20, 1000, 1<<20
	l := New(Config{Store: s, Cells: []Cell{c}})
	c.event = l.Event
	ctx := context.Background()
	must := func(err error) {
		if err != nil {
			b.Fatal(err)
		}
	}
	must(s.Write(ctx, func(tx *store.Tx) error {
		org := cf.Org{Name: "o"}
		must(store.Orgs.Insert(tx, &org))
		space := cf.Space{Name: "s", OrgGUID: org.GUID}
		must(store.Spaces.Insert(tx, &space))
		for i := range 250 {
			app := &cf.App{Name: fmt.Sprint("app", i), SpaceGUID: space.GUID, State: cf.Started, Env: map[string]string{"A": "1", "B": "2"}}
			must(store.Apps.Insert(tx, app))
			d := &cf.Droplet{AppGUID: app.GUID, State: cf.DropletStaged, Digest: "d", Stack: "minifs"}
			must(store.Droplets.Insert(tx, d))
			app.DropletGUID = d.GUID
			must(store.Apps.Update(tx, app))
			must(store.Processes.Insert(tx, &cf.Process{AppGUID: app.GUID, Type: "web", Instances: 1, MemoryMB: 64, DiskMB: 64}))
		}
		return nil
	}))
	step := func() {
		must(store.DeriveOnce(ctx, s, l.decide, func(ctx context.Context, d decision) error { _, err := l.act(ctx, d); return err }))
	}
	step()
	if n := len(c.Containers()); n != 250 {
		b.Fatal(n)
	}
	for b.Loop() {
		step()
	}
}
