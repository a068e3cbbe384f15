package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"cupola/runtime/fault"
	"cupola/runtime/lrp"
	"cupola/store/cf"
)

// noted reads once with f.
func noted(t *testing.T, s *Store, f func(*Tx) error) *Reads {
	t.Helper()
	r := s.Reads()
	t.Cleanup(r.Close)
	if err := r.Read(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	if r.IsStale() {
		t.Fatal("stale though nothing changed")
	}
	return r
}

// TestReadsAreStaleWhenWhatTheyReadChanges has rows change by statements, by
// foreign keys and by a DELETE of a whole table.
func TestReadsAreStaleWhenWhatTheyReadChanges(t *testing.T) {
	list := func(f func(*Tx) (int, error)) func(*Tx) error {
		return func(tx *Tx) error { _, err := f(tx); return err }
	}
	started := func(tx *Tx) error { _, err := Apps.By(tx, "states", string(cf.Started)); return err }
	processes := func(guids ...string) func(*Tx) error {
		return func(tx *Tx) error { _, err := Processes.By(tx, "guids", guids...); return err }
	}
	ofSpace := func(tx *Tx) error {
		_, err := Apps.Where(tx, map[string][]string{"organization_guids": {"none"}})
		return err
	}
	maySleep := func(tx *Tx) error { _, err := Apps.Where(tx, map[string][]string{"sleeping_after": nil}); return err }
	process := &cf.Process{Resource: cf.Resource{GUID: "p-1"}, Type: "web"}
	for name, c := range map[string]struct {
		read  func(*Tx) error
		write func(tx *Tx, app *cf.App) error
		want  bool
	}{
		"a row of the table":                {started, func(tx *Tx, a *cf.App) error { a.State = cf.Started; return Apps.Update(tx, a) }, true},
		"a row that no filter takes":        {started, func(tx *Tx, a *cf.App) error { a.Name = "other"; return Apps.Update(tx, a) }, false},
		"a new row that none takes":         {processes("p-2"), func(tx *Tx, a *cf.App) error { process.AppGUID = a.GUID; return Processes.Insert(tx, process) }, false},
		"a new row that one takes":          {processes("p-2", "p-1"), func(tx *Tx, a *cf.App) error { process.AppGUID = a.GUID; return Processes.Insert(tx, process) }, true},
		"no values":                         {processes(), func(tx *Tx, a *cf.App) error { process.AppGUID = a.GUID; return Processes.Insert(tx, process) }, false},
		"a table of a subquery":             {ofSpace, func(tx *Tx, _ *cf.App) error { return insertOrg("new")(tx) }, false},
		"a row of a subquery":               {ofSpace, func(tx *Tx, _ *cf.App) error { return Spaces.Delete(tx, "empty") }, true},
		"by a foreign key":                  {list(func(tx *Tx) (int, error) { return Processes.Count(tx, Query{}) }), func(tx *Tx, a *cf.App) error { return Apps.Delete(tx, a.GUID) }, true},
		"by foreign keys of foreign keys":   {func(tx *Tx) error { _, err := ServicePlans.All(tx); return err }, func(tx *Tx, _ *cf.App) error { return ServiceBrokers.Delete(tx, "broker") }, true},
		"by a foreign key that is set null": {func(tx *Tx) error { _, err := Spaces.All(tx); return err }, func(tx *Tx, _ *cf.App) error { return PlacementPools.Delete(tx, "pool") }, true},
		"by a trigger": {func(tx *Tx) error { _, err := AppUsageEvents.All(tx); return err }, func(tx *Tx, a *cf.App) error {
			process.AppGUID, process.Instances = a.GUID, 1
			a.State = cf.Started
			return errors.Join(Processes.Insert(tx, process), Apps.Update(tx, a))
		}, true},
		"all rows at once": {func(tx *Tx) error { _, err := ActualLRPs.All(tx); return err }, func(tx *Tx, _ *cf.App) error {
			return errors.Join(ActualLRPs.Insert(tx, lrp.Actual{Key: lrp.Key{ProcessGUID: "p"}, State: lrp.Unclaimed}), tx.ForgetRunning())
		}, true},
		"an app that no label lets sleep": {maySleep, func(tx *Tx, a *cf.App) error { a.Labels = map[string]string{"n": "1"}; return Apps.Update(tx, a) }, false},
		"an app that a label lets sleep": {maySleep, func(tx *Tx, a *cf.App) error {
			a.Labels = map[string]string{cf.LabelSleepAfter: "1s"}
			return Apps.Update(tx, a)
		}, true},
		"another table": {started, func(tx *Tx, _ *cf.App) error { return insertOrg("new")(tx) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := openTest(t)
			_, space, app := seed(t, s)
			write(t, s, func(tx *Tx) error {
				space.PoolGUID = "pool"
				return errors.Join(Processes.Insert(tx, &cf.Process{AppGUID: app.GUID, Type: "worker"}), Spaces.Insert(tx, &cf.Space{Resource: cf.Resource{GUID: "empty"}, Name: "empty", OrgGUID: space.OrgGUID}),
					PlacementPools.Insert(tx, &cf.PlacementPool{Resource: cf.Resource{GUID: "pool"}, Name: "pool"}), Spaces.Update(tx, &space),
					ServiceBrokers.Insert(tx, &cf.ServiceBroker{Resource: cf.Resource{GUID: "broker"}, Name: "broker", URL: "http://broker", State: cf.BrokerAvailable}),
					ServiceOfferings.Insert(tx, &cf.ServiceOffering{Resource: cf.Resource{GUID: "offering"}, Name: "offering", BrokerGUID: "broker"}),
					ServicePlans.Insert(tx, &cf.ServicePlan{Resource: cf.Resource{GUID: "plan"}, Name: "plan", OfferingGUID: "offering"}))
			})
			r := noted(t, s, c.read)
			write(t, s, func(tx *Tx) error { return c.write(tx, &app) })
			if got := r.IsStale(); got != c.want {
				t.Errorf("stale: %v; want %v", got, c.want)
			}
		})
	}
}

// TestChangeWhileReading has rows change after a transaction saw them.
func TestChangeWhileReading(t *testing.T) {
	s := openTest(t)
	r := s.Reads()
	defer r.Close()
	err := r.Read(t.Context(), func(tx *Tx) error {
		_, err := Orgs.All(tx)
		write(t, s, insertOrg("meanwhile"))
		return err
	})
	if err != nil || !r.IsStale() {
		t.Errorf("got %v, stale %v; want nil, true", err, r.IsStale())
	}
}

// TestDamagedRowIsLeftOut wants the other rows, and an error of who asks for the
// one alone.
func TestDamagedRowIsLeftOut(t *testing.T) {
	s := openTest(t)
	_, space, app := seed(t, s)
	write(t, s, func(tx *Tx) error {
		if err := Apps.Insert(tx, &cf.App{Name: "other", SpaceGUID: space.GUID, State: cf.Stopped}); err != nil {
			return err
		}
		_, err := tx.exec("UPDATE apps SET env = x'00', labels = '{' WHERE guid = ?", app.GUID)
		return err
	})
	noted(t, s, func(tx *Tx) error {
		rows, err := Apps.All(tx)
		if err != nil || len(rows) != 1 || rows[0].Name != "other" {
			t.Errorf("got %v, %v; want the other app", rows, err)
		}
		left := Apps.Damaged(tx)
		if len(left) != 1 || left[0].GUID != app.GUID || left[0].SpaceGUID != space.GUID || tx.whole() == nil || !strings.Contains(tx.whole().Error(), app.GUID) {
			t.Errorf("got %+v, %v; want the app", left, tx.whole())
		}
		if _, err := Apps.Get(tx, app.GUID); err == nil || IsNotFound(err) {
			t.Errorf("got %v; want why it cannot be read", err)
		}
		return nil
	})
	read(t, s, func(tx *Tx) error {
		if _, err := Apps.All(tx); err == nil {
			t.Error("another read left the row out")
		}
		return nil
	})
}

// TestAnEndedReadIsNoDamage ends reads while they scan rows, as a daemon that stops
// does.
func TestAnEndedReadIsNoDamage(t *testing.T) {
	s := openTest(t)
	_, space, _ := seed(t, s)
	write(t, s, func(tx *Tx) (err error) {
		for n := range 50 {
			err = errors.Join(err, Apps.Insert(tx, &cf.App{Name: fmt.Sprint(n), SpaceGUID: space.GUID, State: cf.Stopped}))
		}
		return err
	})
	for range 20 {
		ctx, cancel := context.WithCancel(t.Context())
		ended := *Apps
		ended.table.fields = fieldsOf(func(v *cf.App, k *sealer) []any {
			cancel()
			runtime.Gosched()
			return Apps.table.fields.of(v, k)
		})
		r := s.Reads()
		err := r.Read(ctx, func(tx *Tx) error {
			_, err := ended.All(tx)
			if left := ended.Damaged(tx); len(left) > 0 {
				t.Fatalf("%d rows count as damaged", len(left))
			}
			return err
		})
		if err == nil {
			t.Error("the read did not fail")
		}
		r.Close()
	}
}

// TestDeriveGoesOn has both functions fail and panic; the pause between two runs
// grows, and a change among many makes no extra run.
func TestDeriveGoesOn(t *testing.T) {
	fault.Watch(func(*fault.Panic) {})
	synctest.Test(t, func(t *testing.T) {
		s, err := Open(Config{Dir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		began := time.Now()
		var at []time.Duration
		done := make(chan error)
		go func() {
			done <- Derive(ctx, s, Derivation[int]{Name: "orgs", Tick: time.Minute,
				Read: func(tx *Tx) (int, error) {
					at = append(at, time.Since(began).Round(time.Second))
					switch len(at) {
					case 1:
						panic("broken")
					case 2:
						return 0, errors.New("broken")
					}
					return Orgs.Count(tx, Query{})
				},
				Use: func(_ context.Context, n int) (next time.Time, err error) {
					switch len(at) {
					case 3:
						panic("broken")
					case 4:
						return time.Now().Add(10 * time.Second), nil
					}
					return next, nil
				}})
		}()
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		want := []time.Duration{0, 1 * time.Second, 3 * time.Second, 7 * time.Second, 17 * time.Second, 77 * time.Second}
		if !slices.Equal(at, want) {
			t.Errorf("ran at %v; want %v", at, want)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestDerivedEqualsTheRows writes at random, and wants what was derived to be the
// function of the rows once nothing is stale.
func TestDerivedEqualsTheRows(t *testing.T) {
	functions := map[string]func(*Tx) (string, error){
		"apps that run": func(tx *Tx) (string, error) {
			rows, err := Apps.By(tx, "states", string(cf.Started))
			var all []string
			for _, a := range rows {
				processes, perr := Processes.Where(tx, map[string][]string{"app_guids": {a.GUID}, "types": {"WEB", "web"}})
				err = errors.Join(err, perr)
				for _, p := range processes {
					all = append(all, a.Name, p.GUID, fmt.Sprint(p.Instances))
				}
			}
			return strings.Join(all, " "), err
		},
		"all apps": func(tx *Tx) (string, error) {
			n, err := Apps.Count(tx, Query{})
			return fmt.Sprint(n), err
		},
		"names in an org": func(tx *Tx) (string, error) {
			rows, err := Apps.Where(tx, map[string][]string{"organization_guids": {"org-0", "org-1"}})
			var all []string
			for _, a := range rows {
				all = append(all, a.Name)
			}
			return strings.Join(all, " "), err
		},
		"the largest usage event": func(tx *Tx) (string, error) {
			var n int
			err := tx.sql.QueryRowContext(tx.ctx, "SELECT coalesce(max(id), 0) FROM app_usage_events").Scan(&n)
			return fmt.Sprint(n), err
		},
		"one app": func(tx *Tx) (string, error) {
			a, err := Apps.Get(tx, "app-0-0-0")
			if IsNotFound(err) {
				return "", nil
			}
			return fmt.Sprint(a), err
		},
	}
	runs := 0
	s := openTest(t)
	if _, err := s.writer.Exec("PRAGMA synchronous = OFF"); err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(rt *rapid.T) {
		write(t, s, func(tx *Tx) error {
			for _, table := range []string{"apps", "spaces", "orgs"} {
				if _, err := tx.exec("DELETE FROM " + table); err != nil {
					return err
				}
			}
			return nil
		})
		derived, reads := map[string]string{}, map[string]*Reads{}
		for name := range functions {
			reads[name] = s.Reads()
			defer reads[name].Close()
		}
		rt.Repeat(map[string]func(*rapid.T){
			"write": func(rt *rapid.T) {
				for range rapid.IntRange(1, 3).Draw(rt, "statements") {
					w := randomWrite(rt)
					if err := s.Write(t.Context(), w); err != nil && !IsTaken(err) && !IsNotFound(err) && !strings.Contains(err.Error(), "FOREIGN KEY") {
						rt.Fatal(err)
					}
				}
			},
			"": func(rt *rapid.T) {
				for _, name := range slices.Sorted(maps.Keys(functions)) {
					f := functions[name]
					if reads[name].IsStale() {
						runs++
						if err := reads[name].Read(t.Context(), func(tx *Tx) (err error) { derived[name], err = f(tx); return err }); err != nil {
							rt.Fatal(err)
						}
					}
					var want string
					if err := s.Read(t.Context(), func(tx *Tx) (err error) { want, err = f(tx); return err }); err != nil {
						rt.Fatal(err)
					}
					if derived[name] != want {
						rt.Fatalf("%s: derived %q; the rows say %q", name, derived[name], want)
					}
				}
			},
		})
	})
	t.Logf("%d runs", runs)
}

func randomWrite(t *rapid.T) func(*Tx) error {
	draw := func(what string, n int) int { return rapid.IntRange(0, n-1).Draw(t, what) }
	org, space, app := fmt.Sprintf("org-%d", draw("org", 3)), "", ""
	space = fmt.Sprintf("%s-%d", strings.Replace(org, "org", "space", 1), draw("space", 2))
	app = fmt.Sprintf("%s-%d", strings.Replace(space, "space", "app", 1), draw("app", 2))
	state := []cf.AppState{cf.Started, cf.Stopped}[draw("state", 2)]
	switch draw("what", 8) {
	case 0:
		return func(tx *Tx) error { return Orgs.Insert(tx, &cf.Org{Resource: cf.Resource{GUID: org}, Name: org}) }
	case 1:
		return func(tx *Tx) error {
			return Spaces.Insert(tx, &cf.Space{Resource: cf.Resource{GUID: space}, Name: space, OrgGUID: org})
		}
	case 2, 3:
		return func(tx *Tx) error {
			return Apps.Insert(tx, &cf.App{Resource: cf.Resource{GUID: app}, Name: app, SpaceGUID: space, State: state})
		}
	case 4:
		kind := []string{"web", "Web", "worker"}[draw("type", 3)]
		return func(tx *Tx) error {
			return Processes.Insert(tx, &cf.Process{AppGUID: app, Type: kind, Instances: draw("instances", 3)})
		}
	case 5:
		return func(tx *Tx) error {
			a, err := Apps.Get(tx, app)
			if err != nil {
				return err
			}
			a.State = state
			return Apps.Update(tx, a)
		}
	case 6:
		return func(tx *Tx) error {
			all, err := Processes.By(tx, "app_guids", app)
			for _, p := range all {
				p.Instances++
				err = errors.Join(err, Processes.Update(tx, p))
			}
			return err
		}
	}
	gone := []func(*Tx) error{
		func(tx *Tx) error { return Orgs.Delete(tx, org) }, func(tx *Tx) error { return Spaces.Delete(tx, space) },
		func(tx *Tx) error { return Apps.Delete(tx, app) }, func(tx *Tx) error { return Processes.DeleteBy(tx, "app_guids", app) },
	}
	return gone[draw("gone", len(gone))]
}

// TestSleepLabelIsIndexed looks at SQLite's plan: the apps that may sleep are looked
// for with each change of one of them, among all others.
func TestSleepLabelIsIndexed(t *testing.T) {
	s := openTest(t)
	var plan string
	read(t, s, func(tx *Tx) error {
		c, err := Apps.table.condition(Query{Where: map[string][]string{"sleeping_after": nil, "states": {string(cf.Started)}}})
		if err != nil {
			return err
		}
		var id, parent, unused int
		return tx.sql.QueryRowContext(tx.ctx, "EXPLAIN QUERY PLAN SELECT guid FROM apps"+c.where()+" ORDER BY id", c.args...).Scan(&id, &parent, &unused, &plan)
	})
	if !strings.Contains(plan, "apps_sleep_after") {
		t.Errorf("got %q; want the index apps_sleep_after", plan)
	}
}
