package drain

import (
	"errors"
	"fmt"
	"log/slog"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cupola/store"
	"cupola/store/cf"
	"cupola/store/storetest"
)

// TestDamagedRowsStopNoOtherDrain damages the rows of one app in one table after
// the other.
func TestDamagedRowsStopNoOtherDrain(t *testing.T) {
	named := func(guid string) cf.Resource { return cf.Resource{GUID: guid} }
	for _, table := range []string{"", "service_bindings", "apps", "spaces", "orgs"} {
		t.Run(table, func(t *testing.T) {
			dir := t.TempDir()
			s, err := store.Open(store.Config{Dir: dir, Log: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			err = s.Write(t.Context(), func(tx *store.Tx) (err error) {
				for _, n := range []string{"damaged", "well"} {
					err = errors.Join(err, store.Orgs.Insert(tx, &cf.Org{Resource: named(n), Name: n}), store.Spaces.Insert(tx, &cf.Space{Resource: named(n), Name: n, OrgGUID: n}),
						store.Apps.Insert(tx, &cf.App{Resource: named(n), Name: n, SpaceGUID: n, State: cf.Started}),
						store.ServiceInstances.Insert(tx, &cf.ServiceInstance{Resource: named(n), Name: n, SpaceGUID: n, Type: cf.UserProvided}),
						store.ServiceBindings.Insert(tx, &cf.ServiceBinding{Resource: named(n), Type: cf.BindingApp, AppGUID: n, InstanceGUID: n, SyslogDrainURL: "syslog://" + n}))
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			want := []Drain{{AppGUID: "damaged", URL: "syslog://damaged", Host: hostname("damaged", "damaged", "damaged")}, {AppGUID: "well", URL: "syslog://well", Host: hostname("well", "well", "well")}}
			if table != "" {
				storetest.Damage(t, dir, table, "guid = 'damaged'")
				want = want[1:]
			}
			reads := s.Reads()
			defer reads.Close()
			var got []Drain
			if err := reads.Read(t.Context(), func(tx *store.Tx) (err error) { got, err = readDrains(tx); return err }); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestDrainsEqualTheRows writes at random what drains depend on.
func TestDrainsEqualTheRows(t *testing.T) {
	s, err := store.Open(store.Config{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	storetest.Derived(t, s, readDrains, readDrains, func(n string, v int) storetest.Rows {
		named, name := cf.Resource{GUID: n}, fmt.Sprint(n, v)
		return storetest.Rows{
			Puts: []func(*store.Tx) error{
				storetest.Put(store.Orgs, &cf.Org{Resource: named, Name: name}),
				storetest.Put(store.Spaces, &cf.Space{Resource: named, Name: name, OrgGUID: n}),
				storetest.Put(store.Apps, &cf.App{Resource: named, Name: name, SpaceGUID: n, State: cf.Started}),
				storetest.Put(store.ServiceInstances, &cf.ServiceInstance{Resource: named, Name: n, SpaceGUID: n, Type: cf.UserProvided}),
				storetest.Put(store.ServiceBindings.Table, &cf.ServiceBinding{Resource: named, Type: cf.BindingApp, AppGUID: n, InstanceGUID: n, SyslogDrainURL: "syslog://" + name}),
				func(tx *store.Tx) error { return store.ServiceBindings.PassOn(tx, n, nil, "https://"+name) },
			},
			Deletes: []func(*store.Tx) error{storetest.Delete(store.Orgs, n), storetest.Delete(store.Apps, n), storetest.Delete(store.ServiceInstances, n)},
		}
	})
}
