package drain

import (
	"errors"
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
			if err := reads.Read(t.Context(), func(tx *store.Tx) (err error) { got, err = Read(tx); return err }); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Error(d)
			}
		})
	}
}
