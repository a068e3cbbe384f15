package backup

import (
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"

	"cupola/server/admin/archive"
	"cupola/store"
	"cupola/store/cf"
)

// TestNoRoomForAnInstance refuses what the daemon's disk cannot hold before any of it is written.
func TestNoRoomForAnInstance(t *testing.T) {
	p := &archive.Picker{To: io.Discard}
	var found int64
	_, err := pick(p, t.TempDir(), InstanceName{Name: "notes"}, func(size int64) { found = size }, func() error {
		withInstance(t, p.Dir)
		_, err := p.Choose(archive.Manifest{Members: []archive.Member{{Name: archive.TreeName("data"), Size: 1 << 50}}})
		return err
	})
	if err == nil || !strings.Contains(err.Error(), "free; the content of notes") || found != 1<<50 {
		t.Errorf("got %v, a size of %d", err, found)
	}
}

// withInstance makes a database in dir that has a service instance.
func withInstance(t *testing.T, dir string) {
	t.Helper()
	s, err := store.Open(store.Config{Dir: dir, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	of := func(guid string) cf.Resource { return cf.Resource{GUID: guid} }
	err = s.Write(t.Context(), func(tx *store.Tx) error {
		return errors.Join(store.Orgs.Insert(tx, &cf.Org{Resource: of("org"), Name: "o"}), store.Spaces.Insert(tx, &cf.Space{Resource: of("space"), OrgGUID: "org", Name: "s"}),
			store.ServiceBrokers.Insert(tx, &cf.ServiceBroker{Resource: of("broker"), Name: "cupola", URL: "http://b.test", State: cf.BrokerAvailable}),
			store.ServiceOfferings.Insert(tx, &cf.ServiceOffering{Resource: of("offering"), BrokerGUID: "broker", CatalogID: "o", Name: "redis"}),
			store.ServicePlans.Insert(tx, &cf.ServicePlan{Resource: of("plan"), OfferingGUID: "offering", CatalogID: "p", Name: "small"}),
			store.ServiceInstances.Insert(tx, &cf.ServiceInstance{Resource: of("data"), SpaceGUID: "space", PlanGUID: "plan", Name: "notes", Type: cf.Managed}),
			store.DataInstances.Insert(tx, &cf.DataInstance{Resource: of("data"), Service: "redis", Plan: "small", State: cf.DataReady}))
	})
	if err := errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
}

func TestInstanceNames(t *testing.T) {
	all := []named{{Instance{Org: "o", Space: "dev", volume: "1"}, "db"}, {Instance{Org: "o", Space: "prod", volume: "2"}, "db"}, {Instance{Org: "p", Space: "dev", volume: "3"}, "queue"}}
	for _, c := range []struct {
		name        InstanceName
		all         []named
		volume, err string
	}{
		{InstanceName{Name: "queue"}, all, "3", ""},
		{InstanceName{Name: "db", Space: "prod"}, all, "2", ""},
		{InstanceName{Name: "db"}, all, "", "2 service instances named db: give --org and --space"},
		{InstanceName{Name: "db", Org: "p"}, all, "", "no service instance db of the built-in broker; it has: db in the space dev of the org o; db in the space prod of the org o; queue in"},
		{InstanceName{Name: "db"}, nil, "", "has no service instances"},
	} {
		got, err := c.name.of(c.all)
		if got.volume != c.volume || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%+v: got %+v, %v; want %q, %q", c.name, got, err, c.volume, c.err)
		}
	}
}
