package reconcile

import (
	"log/slog"
	"testing"
	"time"

	"cupola/runtime/lrp"
	"cupola/store"
	"cupola/store/cf"
	"cupola/store/storetest"
)

// TestDamagedRowsStopNothing damages the rows of a running app in one table after
// the other. What runs of it goes on, and another app can be started.
func TestDamagedRowsStopNothing(t *testing.T) {
	for table, column := range map[string]string{"apps": "guid", "processes": "app_guid", "droplets": "app_guid", "security_groups": "name", "env_groups": "name", "stacks": "name", "buildpacks": "name"} {
		t.Run(table, func(t *testing.T) {
			withHarness(t, func(t *testing.T, h *harness) {
				app, _ := h.app("damaged", 2, 64)
				h.runAll()
				h.write(func(tx *store.Tx) error {
					if err := store.SecurityGroups.Insert(tx, &cf.SecurityGroup{Name: "damaged", GlobalRunning: true}); err != nil {
						return err
					}
					return store.Buildpacks.Insert(tx, &cf.Buildpack{Name: "damaged", Position: 99, State: "READY"})
				})
				before := len(h.cell.guids(lrp.PhaseRunning))
				value := app.GUID
				if column == "name" {
					value = map[string]string{"security_groups": "damaged", "buildpacks": "damaged", "env_groups": "running", "stacks": "minifs"}[table]
				}
				if table == "env_groups" {
					h.write(func(tx *store.Tx) error {
						return store.EnvGroups.Put(tx, &cf.EnvGroup{Name: "running", Vars: map[string]string{"A": "b"}})
					})
				}
				storetest.Damage(t, h.dir, table, column+" = '"+value+"'")
				h.loop.Wake()
				h.pass(2 * time.Second)
				if got := len(h.cell.guids(lrp.PhaseRunning)); got != before {
					t.Errorf("%d instances run; want %d", got, before)
				}
				well, _ := h.app("well", 1, 64)
				h.runAll()
				if got := len(h.cell.guids(lrp.PhaseRunning)); got != before+1 {
					t.Errorf("%d instances run; want one of %s besides", got, well.Name)
				}
			})
		})
	}
}

// TestDamagedRowsOfWhatRunsAreMended damages the row of an instance: the loop
// stops the instance and starts another one.
func TestDamagedRowsOfWhatRunsAreMended(t *testing.T) {
	withHarness(t, func(t *testing.T, h *harness) {
		h.app("hello", 2, 64)
		h.runAll()
		storetest.Damage(t, h.dir, "actual_lrps", "idx = 1")
		h.loop.Wake()
		h.pass(2 * time.Second)
		h.wantStates("0:RUNNING 1:RUNNING(stopping) ")
		h.exitAll()
		h.runAll()
		h.wantStates("0:RUNNING 1:RUNNING ")
		if n := len(h.cell.Containers()); n != 2 {
			t.Errorf("got %d containers; want 2", n)
		}
	})
}

// TestAnAppThatIsNotStartedIsNoChange wants no look for rows that change nothing of
// what is to run.
func TestAnAppThatIsNotStartedIsNoChange(t *testing.T) {
	s, err := store.Open(store.Config{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	insert := func(name string, state cf.AppState) {
		t.Helper()
		err := s.Write(t.Context(), func(tx *store.Tx) error {
			if err := store.Apps.Insert(tx, &cf.App{Resource: cf.Resource{GUID: name}, Name: name, SpaceGUID: "space", State: state, DropletGUID: name}); err != nil {
				return err
			}
			return store.Processes.Insert(tx, &cf.Process{AppGUID: name, Type: "web", Instances: 1})
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	err = s.Write(t.Context(), func(tx *store.Tx) error {
		if err := store.Orgs.Insert(tx, &cf.Org{Resource: cf.Resource{GUID: "org"}, Name: "org"}); err != nil {
			return err
		}
		return store.Spaces.Insert(tx, &cf.Space{Resource: cf.Resource{GUID: "space"}, Name: "space", OrgGUID: "org"})
	})
	if err != nil {
		t.Fatal(err)
	}
	insert("started", cf.Started)
	l := New(Config{Store: s})
	r := s.Reads()
	defer r.Close()
	if err := r.Read(t.Context(), func(tx *store.Tx) error { _, err := l.decide(tx); return err }); err != nil {
		t.Fatal(err)
	}
	insert("stopped", cf.Stopped)
	if r.IsStale() {
		t.Error("an app that is not started has all apps read again")
	}
	insert("new", cf.Started)
	if !r.IsStale() {
		t.Error("an app that is started has nothing read again")
	}
}
