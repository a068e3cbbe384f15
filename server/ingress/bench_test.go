package ingress

import (
	"context"
	"fmt"
	"testing"

	"cupola/runtime/lrp"
	"cupola/server/bbs/bbsrows"
	"cupola/store"
	"cupola/store/cf"
)

// BenchmarkRead derives the tables beside 1,000 apps, after a change of one.
func BenchmarkRead(b *testing.B) {
	for _, instances := range []int{0, 250} {
		b.Run(fmt.Sprint(instances), func(b *testing.B) { benchmarkRead(b, instances) })
	}
}

func benchmarkRead(b *testing.B, instances int) {
	s, err := store.Open(store.Config{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	ctx, bbs := context.Background(), bbsrows.New()
	var some *cf.Route
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
		domain := cf.Domain{Name: "apps.test"}
		must(store.Domains.Insert(tx, &domain))
		for n := range 1000 {
			app := &cf.App{Name: fmt.Sprint("app", n), SpaceGUID: space.GUID, State: cf.Stopped}
			must(store.Apps.Insert(tx, app))
			p := &cf.Process{AppGUID: app.GUID, Type: "web", Instances: 1}
			must(store.Processes.Insert(tx, p))
			some = &cf.Route{Host: app.Name, DomainGUID: domain.GUID, SpaceGUID: space.GUID, Destinations: []cf.Destination{{AppGUID: app.GUID}}}
			must(store.Routes.Insert(tx, some))
			if n < instances {
				must(store.ActualLRPs.Insert(tx, lrp.Actual{Key: lrp.Key{ProcessGUID: p.GUID}, Domain: lrp.DomainApps, Ready: true, InstanceGUID: p.GUID, State: lrp.Running, Address: "10.0.0.1"}))
			}
		}
		return nil
	}))
	r := s.Reads()
	defer r.Close()
	for n := 0; b.Loop(); n++ {
		some.Metadata.Labels = map[string]string{"n": fmt.Sprint(n)}
		must(s.Write(ctx, func(tx *store.Tx) error { return store.Routes.Update(tx, some) }))
		must(r.Read(ctx, func(tx *store.Tx) error { _, err := Read(tx, bbs); return err }))
	}
}
