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

// BenchmarkStep decides what to do with the apps that run, beside others that do not,
// after a change of one.
func BenchmarkStep(b *testing.B) {
	for _, apps := range []struct{ running, stopped int }{{1, 1000}, {250, 0}, {1000, 0}} {
		b.Run(fmt.Sprintf("%d of %d", apps.running, apps.running+apps.stopped), func(b *testing.B) { benchmarkStep(b, apps.running, apps.stopped) })
	}
}

func benchmarkStep(b *testing.B, running, stopped int) {
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
	var route *cf.Route
	must(s.Write(ctx, func(tx *store.Tx) error {
		org := cf.Org{Name: "o"}
		must(store.Orgs.Insert(tx, &org))
		space := cf.Space{Name: "s", OrgGUID: org.GUID}
		must(store.Spaces.Insert(tx, &space))
		domain := cf.Domain{Name: "apps.test"}
		must(store.Domains.Insert(tx, &domain))
		for i := range running + stopped {
			app := &cf.App{Name: fmt.Sprint("app", i), SpaceGUID: space.GUID, State: cf.Stopped, Env: map[string]string{"A": "1", "B": "2"}}
			must(store.Apps.Insert(tx, app))
			d := &cf.Droplet{AppGUID: app.GUID, State: cf.DropletStaged, Digest: "d", Stack: "minifs"}
			must(store.Droplets.Insert(tx, d))
			app.DropletGUID = d.GUID
			if i < running {
				app.State = cf.Started
			}
			must(store.Apps.Update(tx, app))
			must(store.Processes.Insert(tx, &cf.Process{AppGUID: app.GUID, Type: "web", Instances: 1, MemoryMB: 64, DiskMB: 64}))
			route = &cf.Route{Host: app.Name, DomainGUID: domain.GUID, SpaceGUID: space.GUID, Destinations: []cf.Destination{{AppGUID: app.GUID}}}
			must(store.Routes.Insert(tx, route))
		}
		return nil
	}))
	r := s.Reads()
	defer r.Close()
	step := func() {
		var d decision
		must(r.Read(ctx, func(tx *store.Tx) (err error) { d, err = l.decide(tx); return err }))
		_, err := l.act(ctx, d)
		must(err)
	}
	step()
	if n := len(c.Containers()); n != running {
		b.Fatal(n)
	}
	for n := 0; b.Loop(); n++ {
		route.Metadata.Labels = map[string]string{"n": fmt.Sprint(n)}
		must(s.Write(ctx, func(tx *store.Tx) error { return store.Routes.Update(tx, route) }))
		step()
	}
}
