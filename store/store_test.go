package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cupola/store/cf"
)

func openTest(t *testing.T) *Store {
	t.Helper()
	s, err := Open(Config{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func write(t *testing.T, s *Store, f func(*Tx) error) {
	t.Helper()
	if err := s.Write(context.Background(), f); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, s *Store, f func(*Tx) error) {
	t.Helper()
	if err := s.Read(context.Background(), f); err != nil {
		t.Fatal(err)
	}
}

// seed makes an org with a space with an app.
func seed(t *testing.T, s *Store) (org cf.Org, space cf.Space, app cf.App) {
	t.Helper()
	write(t, s, func(tx *Tx) error {
		org = cf.Org{Name: "org", Metadata: cf.Metadata{Labels: map[string]string{"env": "prod"}}}
		if err := Orgs.Insert(tx, &org); err != nil {
			return err
		}
		space = cf.Space{Name: "dev", OrgGUID: org.GUID}
		if err := Spaces.Insert(tx, &space); err != nil {
			return err
		}
		app = cf.App{Name: "hello", SpaceGUID: space.GUID, State: cf.Stopped, Env: map[string]string{"KEY": "very secret"},
			Lifecycle: cf.Lifecycle{Type: "buildpack", Stack: "docker://reg.io/a", Buildpacks: []string{"https://joe:very secret@example.com/bp.zip"},
				Image: &cf.StackImage{Reference: "docker://reg.io/a@sha256:1", Compat: "a"}},
			Credentials: cf.Credentials{"reg.io": {Username: "joe", Password: "very secret"}}}
		return Apps.Insert(tx, &app)
	})
	return org, space, app
}

func TestRowsComeBackAsTheyWentIn(t *testing.T) {
	s := openTest(t)
	_, _, app := seed(t, s)
	read(t, s, func(tx *Tx) error {
		got, err := Apps.Get(tx, app.GUID)
		if err != nil {
			return err
		}
		if d := cmp.Diff(&app, got); d != "" {
			t.Error(d)
		}
		return nil
	})
}

func TestEveryTableListsWithEveryFilterAndOrder(t *testing.T) {
	s := openTest(t)
	seed(t, s)
	read(t, s, func(tx *Tx) error {
		probe(t, tx, Orgs)
		probe(t, tx, OrgQuotas)
		probe(t, tx, Spaces)
		probe(t, tx, Users)
		probe(t, tx, Roles)
		probe(t, tx, Domains)
		probe(t, tx, Stacks)
		probe(t, tx, Buildpacks)
		probe(t, tx, Apps)
		probe(t, tx, Processes)
		probe(t, tx, Packages)
		probe(t, tx, Builds)
		probe(t, tx, Droplets)
		probe(t, tx, Routes)
		probe(t, tx, Tasks)
		probe(t, tx, Revisions)
		probe(t, tx, Deployments.Table)
		probe(t, tx, ServiceInstances)
		probe(t, tx, ServiceBindings.Table)
		probe(t, tx, RouteBindings)
		probe(t, tx, Jobs.Table)
		probe(t, tx, Events)
		probe(t, tx, SecurityGroups)
		probe(t, tx, NetworkPolicies.Table)
		probe(t, tx, FeatureFlags)
		probe(t, tx, EnvGroups)
		probe(t, tx, ActualLRPs.Table)
		probe(t, tx, ActualLRPTags)
		probe(t, tx, LRPTasks.Table)
		probe(t, tx, BBSDesireds.Table)
		probe(t, tx, BBSDesiredKeys)
		probe(t, tx, BBSDesiredTags)
		probe(t, tx, BBSDomains.Table)
		probe(t, tx, BBSLocks)
		probe(t, tx, BBSTasks.Table)
		probe(t, tx, ServiceBrokers)
		probe(t, tx, ServiceOfferings)
		probe(t, tx, ServicePlans.Table)
		probe(t, tx, ServicePlanVisibilities)
		probe(t, tx, BrokerOperations.Table)
		return nil
	})
}

func probe[T any](t *testing.T, tx *Tx, table *Table[T]) {
	t.Helper()
	for _, f := range table.Filters() {
		q := Query{Where: map[string][]string{f: {"x", "y"}}, Page: 1, PerPage: 5, Visible: &Scope{Orgs: []string{"o"}, Spaces: []string{"s"}}}
		if table.Labelled() {
			q.Labels = []Label{{Key: "a/b", Op: LabelNotIn, Values: []string{"c"}}, {Key: "d", Op: LabelExists}}
		}
		if rows, total, err := table.List(tx, q); err != nil || len(rows) != 0 || total != 0 {
			t.Errorf("%s by %s: got %d rows of %d, %v; want none", table.Name(), f, len(rows), total, err)
		}
	}
	for _, o := range table.Orders() {
		if _, _, err := table.List(tx, Query{Order: o, Desc: true}); err != nil {
			t.Errorf("%s ordered by %s: %v", table.Name(), o, err)
		}
	}
}

func TestListShowsOnlyTheScope(t *testing.T) {
	s := openTest(t)
	_, space, app := seed(t, s)
	read(t, s, func(tx *Tx) error {
		for _, c := range []struct {
			scope *Scope
			want  int
		}{{nil, 1}, {&Scope{}, 0}, {&Scope{Spaces: []string{space.GUID}}, 1}} {
			if _, n, err := Apps.List(tx, Query{Visible: c.scope}); err != nil || n != c.want {
				t.Errorf("scope %v: got %d apps, %v; want %d", c.scope, n, err, c.want)
			}
		}
		if _, err := Apps.Visible(tx, app.GUID, &Scope{}); !IsNotFound(err) || err.Error() != "App not found" {
			t.Errorf("got %v; want App not found", err)
		}
		return nil
	})
}

func TestLabelsChooseRows(t *testing.T) {
	s := openTest(t)
	seed(t, s)
	for _, c := range []struct {
		label Label
		want  int
	}{
		{Label{"env", LabelIn, []string{"prod", "x"}}, 1},
		{Label{"env", LabelIn, []string{"x"}}, 0},
		{Label{"env", LabelNotIn, []string{"x"}}, 1},
		{Label{"env", LabelNotExists, nil}, 0},
		{Label{"other", LabelNotExists, nil}, 1},
	} {
		read(t, s, func(tx *Tx) error {
			n, err := Orgs.Count(tx, Query{Labels: []Label{c.label}})
			if n != c.want {
				t.Errorf("%v: got %d; want %d", c.label, n, c.want)
			}
			return err
		})
	}
}

func TestSecondOfANameIsTaken(t *testing.T) {
	s := openTest(t)
	_, space, _ := seed(t, s)
	err := s.Write(context.Background(), func(tx *Tx) error {
		return Apps.Insert(tx, &cf.App{Name: "HELLO", SpaceGUID: space.GUID, State: cf.Stopped})
	})
	if !IsTaken(err) {
		t.Errorf("got %v; want taken", err)
	}
}

func TestSecretsAreNotInTheFile(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	seed(t, s)
	s.Close()
	files, _ := filepath.Glob(filepath.Join(dir, "*"))
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(b), "very secret") {
			t.Errorf("%s holds the secret", f)
		}
	}
	if info, err := os.Stat(filepath.Join(dir, "store.key")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("store.key: %v, %v; want mode 0600", info, err)
	}
}

func TestRowsOfAnOlderLifecycleAreRead(t *testing.T) {
	s := openTest(t)
	_, _, app := seed(t, s)
	write(t, s, func(tx *Tx) error {
		_, err := tx.exec(`UPDATE apps SET lifecycle = '{"Type":"buildpack","Buildpacks":["a","b"],"Stack":"minifs"}'`)
		return err
	})
	read(t, s, func(tx *Tx) error {
		got, err := Apps.First(tx, Query{Where: map[string][]string{"stacks": {"minifs"}, "guids": {app.GUID}}})
		if err != nil {
			return err
		}
		if d := cmp.Diff(cf.Lifecycle{Type: "buildpack", Buildpacks: []string{"a", "b"}, Stack: "minifs"}, got.Lifecycle); d != "" {
			t.Error(d)
		}
		return nil
	})
}

func TestFailedWriteChangesNothingAndTellsNobody(t *testing.T) {
	s := openTest(t)
	reads := noted(t, s, func(tx *Tx) error { _, err := Orgs.All(tx); return err })
	boom := errors.New("boom")
	err := s.Write(context.Background(), func(tx *Tx) error {
		if err := Orgs.Insert(tx, &cf.Org{Name: "o"}); err != nil {
			return err
		}
		return boom
	})
	if !errors.Is(err, boom) {
		t.Fatalf("got %v; want boom", err)
	}
	read(t, s, func(tx *Tx) error {
		if n, _ := Orgs.Count(tx, Query{}); n != 0 {
			t.Errorf("got %d orgs; want none", n)
		}
		return nil
	})
	if reads.IsStale() {
		t.Error("what was read before is stale")
	}
}

func TestCommitTellsReadsOfItsTables(t *testing.T) {
	s := openTest(t)
	orgs := noted(t, s, func(tx *Tx) error { _, err := Orgs.All(tx); return err })
	tasks := noted(t, s, func(tx *Tx) error { _, err := Tasks.All(tx); return err })
	seed(t, s)
	if len(orgs.Stale()) != 1 || len(tasks.Stale()) != 0 {
		t.Errorf("got %d, %d signals; want 1, 0", len(orgs.Stale()), len(tasks.Stale()))
	}
}

func TestNewerDatabaseIsRefused(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.writer.Exec("PRAGMA user_version = 999"); err != nil {
		t.Fatal(err)
	}
	s.Close()
	if _, err := Open(Config{Dir: dir}); err == nil || !strings.Contains(err.Error(), "newer cupola") {
		t.Errorf("got %v; want a refusal", err)
	}
}

func TestForeignKeysHaveIndexes(t *testing.T) {
	s := openTest(t)
	rows, err := s.writer.Query(`SELECT m.name, f."from" FROM sqlite_master m, pragma_foreign_key_list(m.name) f
		WHERE m.type = 'table' AND NOT EXISTS (
			SELECT 1 FROM pragma_index_list(m.name) l, pragma_index_info(l.name) i WHERE i.seqno = 0 AND i.name = f."from")`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var table, column string
		if err := rows.Scan(&table, &column); err != nil {
			t.Fatal(err)
		}
		t.Errorf("%s.%s has no index", table, column)
	}
	if err := rows.Err(); err != nil {
		t.Error(err)
	}
}

func TestPassingErrors(t *testing.T) {
	s := openTest(t)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for name, test := range map[string]struct {
		ctx  context.Context
		do   func(*Tx) error
		want bool
	}{
		"nobody waits":    {gone, func(tx *Tx) error { _, err := Apps.All(tx); return err }, true},
		"the database":    {t.Context(), func(tx *Tx) error { _, err := tx.exec("DELETE FROM nowhere"); return err }, true},
		"no row":          {t.Context(), func(tx *Tx) error { _, err := Apps.Get(tx, "none"); return err }, false},
		"somebody else's": {t.Context(), func(*Tx) error { return errors.New("no") }, false},
	} {
		if err := s.Write(test.ctx, test.do); err == nil || IsPassing(err) != test.want {
			t.Errorf("%s: got %v, passing %v; want %v", name, err, IsPassing(err), test.want)
		}
	}
}

// TestDatabaseIsItsOwnersAlone opens a new database, and one that an earlier
// cupola made with the umask's mode.
func TestDatabaseIsItsOwnersAlone(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"new", "old"} {
		s, err := Open(Config{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		write(t, s, func(tx *Tx) error { return Orgs.Insert(tx, &cf.Org{Name: name}) })
		copied := t.TempDir()
		if err := s.Snapshot(t.Context(), copied); err != nil {
			t.Fatal(err)
		}
		for _, d := range []string{dir, copied} {
			files, err := os.ReadDir(d)
			if err != nil || len(files) < 2 {
				t.Fatal(files, err)
			}
			for _, f := range files {
				if info, err := f.Info(); err != nil || info.Mode() != 0o600 {
					t.Errorf("%s database: %s is %v, %v; want 0600", name, f.Name(), info.Mode(), err)
				}
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(filepath.Join(dir, DatabaseFile), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestAsManyLabelsAsTheAPITakes asks for more requirements than the API lets
// through at once.
func TestAsManyLabelsAsTheAPITakes(t *testing.T) {
	s := openTest(t)
	seed(t, s)
	labels := []Label{{Key: "env", Op: LabelIn, Values: []string{"prod"}}}
	for n := range 300 {
		labels = append(labels, Label{Key: fmt.Sprint(n), Op: LabelNotExists})
	}
	read(t, s, func(tx *Tx) error {
		_, n, err := Orgs.List(tx, Query{Labels: labels, Page: 1, PerPage: 1})
		if n != 1 {
			t.Errorf("got %d orgs; want 1", n)
		}
		return err
	})
}
