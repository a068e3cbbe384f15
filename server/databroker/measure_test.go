package databroker

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cupola/server/logcache"
	"cupola/store"
	"cupola/store/cf"
)

// named has a service instance of the platform, in the space "space" of the org "org".
func (w *world) named(guid, name string) {
	w.t.Helper()
	w.write(func(tx *store.Tx) error {
		if n, err := store.Orgs.Count(tx, store.Query{}); err != nil || n == 0 {
			org, space := &cf.Org{Resource: cf.Resource{GUID: "o"}, Name: "org"}, &cf.Space{Resource: cf.Resource{GUID: "s"}, Name: "space", OrgGUID: "o"}
			if err := errors.Join(err, store.Orgs.Insert(tx, org), store.Spaces.Insert(tx, space)); err != nil {
				return err
			}
		}
		return store.ServiceInstances.Insert(tx, &cf.ServiceInstance{Resource: cf.Resource{GUID: guid}, Name: name, Type: cf.UserProvided, SpaceGUID: "s", LastOperation: cf.LastOperation{State: cf.OpSucceeded}})
	})
}

// Disks and connections are measured under the names of the service instance, of its space and of its org.
func TestMeasure(t *testing.T) {
	w := newWorld(t)
	w.ready("i1")
	w.certified = map[string]bool{"i1": true}
	w.named("i1", "notes")
	w.write(func(tx *store.Tx) error {
		return store.DataInstances.Insert(tx, &cf.DataInstance{Resource: cf.Resource{GUID: "purged"}, Service: "files", Plan: "small", State: cf.DataReady})
	})
	now := time.Unix(1e9, 0)
	if err := (&Service{broker: w.broker}).Measure(t.Context(), now); err != nil {
		t.Fatal(err)
	}
	disk := []logcache.Metric{{Name: "persistent_disk", Unit: "bytes", Value: 1 << 20}, {Name: "persistent_disk_quota", Unit: "bytes", Value: 1 << 30}}
	tags := map[string]string{"service_instance_id": "i1", "service_instance_name": "notes", "space_id": "s", "space_name": "space", "organization_id": "o", "organization_name": "org"}
	want := []logcache.Envelope{
		{Timestamp: now, SourceID: "i1", InstanceID: "0", Tags: tags, Kind: logcache.Gauge, Metrics: append(disk[:2:2], logcache.Metric{Name: "connections", Unit: "connections", Value: 1})},
		{Timestamp: now, SourceID: "purged", InstanceID: "0", Tags: map[string]string{"service_instance_id": "purged"}, Kind: logcache.Gauge, Metrics: disk},
	}
	if diff := cmp.Diff(want, w.gauges); diff != "" {
		t.Error(diff)
	}
}

// The lines of a server have the names of its service instance: a rename changes them, and no container.
func TestDesiredHasTags(t *testing.T) {
	w := newWorld(t)
	w.ready("i1")
	w.named("i1", "notes")
	for _, name := range []string{"notes", "renamed"} {
		w.write(func(tx *store.Tx) error {
			i, err := store.ServiceInstances.Get(tx, "i1")
			if err != nil {
				return err
			}
			i.Name = name
			return store.ServiceInstances.Update(tx, i)
		})
		w.write(func(tx *store.Tx) error {
			all, _, err := AllDesired(tx)
			if err == nil && (len(all) != 1 || all[0].Log.Tags["service_instance_name"] != name || all[0].Log.Tags["space_name"] != "space" || all[0].Log.Source != "SERVICE/POSTGRES") {
				t.Errorf("got %+v", all)
			}
			return err
		})
	}
}

// A service instance leads to its dashboard, also one of an earlier cupola, and after the address changed.
func TestDashboards(t *testing.T) {
	w := newWorld(t)
	w.ready("i1")
	w.named("i1", "notes")
	w.named("of another broker", "other")
	leads := func() (to string) {
		w.write(w.leadToDashboards)
		w.write(func(tx *store.Tx) error {
			some, err := w.misled(tx)
			if len(some) > 0 {
				t.Errorf("%d still lead elsewhere", len(some))
			}
			i, err2 := store.ServiceInstances.Get(tx, "i1")
			if other, _ := store.ServiceInstances.Get(tx, "of another broker"); other.DashboardURL != "" {
				t.Errorf("the other one leads to %q", other.DashboardURL)
			}
			if err2 != nil {
				return err2
			}
			to = i.DashboardURL
			return err
		})
		return to
	}
	if got := leads(); got != "http://console/i1" {
		t.Errorf("got %q", got)
	}
	w.Dashboard = func(guid string) string { return "https://elsewhere/" + guid }
	if got := leads(); got != "https://elsewhere/i1" {
		t.Errorf("got %q", got)
	}
	w.Dashboard = func(string) string { return "" }
	if got := leads(); got != "" {
		t.Errorf("got %q", got)
	}
}
