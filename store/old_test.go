package store

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cupola/runtime/lrp"
	"cupola/store/cf"
)

func dropOld(t *testing.T, s *Store) {
	t.Helper()
	if err := s.DropOld(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// However many rows are old, no transaction deletes more than some.
func TestDropOldInShortTransactions(t *testing.T) {
	s := openTest(t)
	write(t, s, func(tx *Tx) error {
		for range 2*oldRows + 1 {
			if err := Events.Insert(tx, &cf.Event{Resource: cf.Resource{CreatedAt: tx.Now.Add(-2 * keptHistory)}}); err != nil {
				return err
			}
		}
		return nil
	})
	transactions := 0
	s.OnWrite(func(h Held) { transactions++ })
	dropOld(t, s)
	if transactions != len(oldOnes)+2 {
		t.Errorf("%d transactions; want 3 for the events, and one for each other table", transactions)
	}
	read(t, s, func(tx *Tx) error {
		n, err := Events.Count(tx, Query{})
		if n != 0 {
			t.Errorf("%d old events are left", n)
		}
		return err
	})
}

func TestDropOldKeepsWhatIsYoungOrInUse(t *testing.T) {
	s := openTest(t)
	_, _, app := seed(t, s)
	day := func(n int) cf.Resource {
		return cf.Resource{GUID: fmt.Sprint(n), CreatedAt: time.Now().Add(-time.Duration(n) * 24 * time.Hour).Truncate(time.Microsecond)}
	}
	write(t, s, func(tx *Tx) error {
		for _, n := range []int{1, 30, 32, 89, 91} {
			rows := []error{Events.Insert(tx, &cf.Event{Resource: day(n)}), Jobs.Insert(tx, &cf.Job{Resource: day(n), State: cf.JobComplete}),
				Tasks.Insert(tx, &cf.Task{Resource: day(n), AppGUID: app.GUID, SequenceID: n, State: cf.TaskFailed}),
				Tasks.Insert(tx, &cf.Task{Resource: day(1000 + n), AppGUID: app.GUID, SequenceID: 1000 + n, State: cf.TaskRunning})}
			for _, err := range rows {
				if err != nil {
					return err
				}
			}
		}
		young := tx.Now
		tx.Now = young.Add(-40 * 24 * time.Hour)
		if err := Resources.Remember(tx, "old", 1, Resource{Digest: "d1"}); err != nil {
			return err
		}
		tx.Now = young
		return Resources.Remember(tx, "new", 1, Resource{Digest: "d2"})
	})
	dropOld(t, s)
	read(t, s, func(tx *Tx) error {
		events, _ := Events.All(tx)
		jobs, _ := Jobs.All(tx)
		tasks, err := Tasks.All(tx)
		for _, c := range []struct{ what, got, want string }{
			{"events", guids(events, func(e *cf.Event) string { return e.GUID }), "1 30"},
			{"jobs", guids(jobs, func(j *cf.Job) string { return j.GUID }), "1 30 32 89"},
			{"tasks", guids(tasks, func(t *cf.Task) string { return t.GUID }), "1 1001 1030 1032 1089 1091 30"},
		} {
			if c.got != c.want {
				t.Errorf("%s: got %s; want %s", c.what, c.got, c.want)
			}
		}
		if _, ok, _ := Resources.Find(tx, "old", 1); ok {
			t.Error("the old file is known")
		}
		if _, ok, _ := Resources.Find(tx, "new", 1); !ok {
			t.Error("the new file is not known")
		}
		return err
	})
}

func guids[T any](rows []*T, guid func(*T) string) string {
	var list []string
	for _, r := range rows {
		list = append(list, guid(r))
	}
	slices.Sort(list)
	return strings.Join(list, " ")
}

// An app keeps the bits of its five newest packages and droplets, and of those
// that something uses; the blobs of no others are named.
func TestDropOldLetsBitsExpire(t *testing.T) {
	s := openTest(t)
	_, _, app := seed(t, s)
	write(t, s, func(tx *Tx) error {
		for n := range 10 {
			id := cf.Resource{GUID: fmt.Sprint(n)}
			if err := Packages.Insert(tx, &cf.Package{Resource: id, AppGUID: app.GUID, Type: "bits", State: cf.PackageReady, Digest: fmt.Sprint("p", n)}); err != nil {
				return err
			}
			if err := Droplets.Insert(tx, &cf.Droplet{Resource: id, AppGUID: app.GUID, PackageGUID: id.GUID, State: cf.DropletStaged, Digest: fmt.Sprint("d", n)}); err != nil {
				return err
			}
		}
		if err := Processes.Insert(tx, &cf.Process{AppGUID: app.GUID, Type: "web", DropletGUID: "3"}); err != nil {
			return err
		}
		app.DropletGUID = "0"
		if err := Apps.Update(tx, &app); err != nil {
			return err
		}
		if err := Builds.Insert(tx, &cf.Build{AppGUID: app.GUID, PackageGUID: "1", State: cf.BuildStaging}); err != nil {
			return err
		}
		if err := LRPTasks.Insert(tx, lrp.Task{GUID: "t", State: lrp.TaskPending}); err != nil { // has no outputs yet
			return err
		}
		return Tasks.Insert(tx, &cf.Task{AppGUID: app.GUID, DropletGUID: "2", SequenceID: 1, State: cf.TaskRunning})
	})
	dropOld(t, s)
	read(t, s, func(tx *Tx) error {
		named := map[string]bool{}
		err := tx.NamedBlobs(named)
		delete(named, "")
		want := map[string]bool{"p0": true, "p1": true, "d0": true, "d2": true, "d3": true}
		for n := 5; n < 10; n++ {
			want[fmt.Sprint("p", n)], want[fmt.Sprint("d", n)] = true, true
		}
		if d := cmp.Diff(want, named); d != "" {
			t.Error(d)
		}
		p, _ := Packages.Get(tx, "4")
		d, _ := Droplets.Get(tx, "4")
		if p.State != cf.PackageExpired || d.State != cf.DropletExpired {
			t.Errorf("got %s and %s; want both EXPIRED", p.State, d.State)
		}
		return err
	})
}

// An app keeps its hundred newest revisions and deployments, and those that
// something has or does.
func TestDropOldForgetsThePast(t *testing.T) {
	s := openTest(t)
	_, _, app := seed(t, s)
	write(t, s, func(tx *Tx) error {
		if err := Processes.Insert(tx, &cf.Process{AppGUID: app.GUID, Type: "web", RevisionGUID: "2"}); err != nil {
			return err
		}
		for n := range 103 {
			id := cf.Resource{GUID: fmt.Sprint(n)}
			if err := Revisions.Insert(tx, &cf.Revision{Resource: id, AppGUID: app.GUID, Version: n}); err != nil {
				return err
			}
			d := &cf.Deployment{Resource: id, AppGUID: app.GUID, Strategy: cf.Rolling}
			d.Become(cf.Deployed, "DEPLOYED", tx.Now)
			if n == 1 {
				d.Become(cf.Paused, "PAUSED", tx.Now)
			}
			if err := Deployments.Insert(tx, d); err != nil {
				return err
			}
		}
		return nil
	})
	dropOld(t, s)
	read(t, s, func(tx *Tx) error {
		revisions, _ := Revisions.All(tx)
		deployments, err := Deployments.All(tx)
		if len(revisions) != 101 || revisions[0].GUID != "2" || len(deployments) != 101 || deployments[0].GUID != "1" || deployments[1].GUID != "3" {
			t.Errorf("got %d revisions from %s, %d deployments from %s; want 101 from 2, 101 from 1", len(revisions), revisions[0].GUID, len(deployments), deployments[0].GUID)
		}
		return err
	})
}
