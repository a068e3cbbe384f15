package store

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"cupola/runtime/lrp"
)

func actual(index int) lrp.Actual {
	return lrp.Actual{Key: lrp.Key{ProcessGUID: "p-1", Index: index}, Domain: lrp.DomainApps, State: lrp.Unclaimed,
		Since: time.UnixMicro(1_700_000_000_000_000).UTC(), Ports: []uint16{8080}}
}

// untagged sets aside what a row's tag is.
var untagged = cmpopts.IgnoreFields(lrp.Actual{}, "Tag")

func TestAnActualChangesOnlyFromTheStateItWasSeenIn(t *testing.T) {
	s := openTest(t)
	write(t, s, func(tx *Tx) error { return ActualLRPs.Insert(tx, actual(0)) })
	was := actual(0)
	next := was
	next.State, next.InstanceGUID, next.CellID = lrp.Claimed, "i-1", "cell"
	for _, want := range []bool{true, false} {
		write(t, s, func(tx *Tx) error {
			got, err := ActualLRPs.Swap(tx, was, next)
			if got != want {
				t.Errorf("swap: got %v; want %v", got, want)
			}
			return err
		})
	}
	read(t, s, func(tx *Tx) error {
		got, err := ActualLRPs.OfInstance(tx, "i-1")
		if d := cmp.Diff(&next, got, untagged); err == nil && d != "" {
			t.Error(d)
		}
		return err
	})
	write(t, s, func(tx *Tx) error {
		if got, err := ActualLRPs.Delete(tx, was); got || err != nil {
			t.Errorf("delete of a stale row: got %v, %v", got, err)
		}
		got, err := ActualLRPs.Delete(tx, next)
		if !got {
			t.Error("row was not deleted")
		}
		return err
	})
}

func TestAnIndexHasOneActual(t *testing.T) {
	s := openTest(t)
	write(t, s, func(tx *Tx) error { return ActualLRPs.Insert(tx, actual(0)) })
	write(t, s, func(tx *Tx) error {
		if err := ActualLRPs.Insert(tx, actual(0)); !IsTaken(err) {
			t.Errorf("got %v; want taken", err)
		}
		return nil
	})
}

func TestRetire(t *testing.T) {
	running := actual(1)
	running.State, running.InstanceGUID, running.Ready = lrp.Running, "i-1", true
	stopping := running
	stopping.Stopping, stopping.Ready = true, false
	crashed := actual(2)
	crashed.State = lrp.Crashed
	for _, c := range []struct {
		name  string
		row   lrp.Actual
		found bool
		left  []*lrp.Actual
	}{
		{"running", running, true, []*lrp.Actual{&stopping}},
		{"crashed", crashed, true, nil},
		{"unclaimed", actual(1), true, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := openTest(t)
			write(t, s, func(tx *Tx) error { return ActualLRPs.Insert(tx, c.row) })
			write(t, s, func(tx *Tx) error {
				if got, err := ActualLRPs.Retire(tx, lrp.Key{ProcessGUID: "p-1", Index: 7}); got || err != nil {
					t.Errorf("retire of none: got %v, %v", got, err)
				}
				got, err := ActualLRPs.Retire(tx, c.row.Key)
				if got != c.found {
					t.Errorf("got %v; want %v", got, c.found)
				}
				return err
			})
			read(t, s, func(tx *Tx) error {
				rows, err := ActualLRPs.All(tx)
				if d := cmp.Diff(c.left, rows, untagged); d != "" {
					t.Error(d)
				}
				return err
			})
		})
	}
}

func TestALRPTaskChangesOnlyFromTheStateItWasSeenIn(t *testing.T) {
	s := openTest(t)
	write(t, s, func(tx *Tx) error {
		return LRPTasks.Insert(tx, lrp.Task{GUID: "t", Domain: lrp.DomainTasks, State: lrp.TaskPending})
	})
	var was lrp.Task
	read(t, s, func(tx *Tx) error {
		got, err := LRPTasks.Get(tx, "t")
		was = *got
		return err
	})
	next := was
	next.State, next.CellID, next.Result = lrp.TaskRunning, "cell", []byte("secret")
	next.Outputs = []lrp.Blob{{Name: "droplet", Digest: "d", Size: 3}}
	for _, want := range []bool{true, false} {
		write(t, s, func(tx *Tx) error {
			next.UpdatedAt = tx.Now
			got, err := LRPTasks.Swap(tx, was, next)
			if got != want {
				t.Errorf("swap: got %v; want %v", got, want)
			}
			return err
		})
	}
	write(t, s, func(tx *Tx) error {
		got, err := LRPTasks.Get(tx, "t")
		if err != nil {
			return err
		}
		next.UpdatedAt = got.UpdatedAt
		if d := cmp.Diff(&next, got); d != "" {
			t.Error(d)
		}
		if gone, err := LRPTasks.Delete(tx, was); gone || err != nil {
			t.Errorf("delete of a stale row: got %v, %v", gone, err)
		}
		gone, err := LRPTasks.Delete(tx, next)
		if !gone {
			t.Error("row was not deleted")
		}
		return err
	})
}

func TestBuildCachesAreOfAnAppAndAStack(t *testing.T) {
	s := openTest(t)
	_, _, app := seed(t, s)
	write(t, s, func(tx *Tx) error {
		for _, d := range []string{"old", "new"} {
			if err := BuildCaches.Set(tx, app.GUID, "minifs", d); err != nil {
				return err
			}
		}
		return nil
	})
	read(t, s, func(tx *Tx) error {
		got, err := BuildCaches.Get(tx, app.GUID, "minifs")
		if got != "new" {
			t.Errorf("got %q; want new", got)
		}
		if other, _ := BuildCaches.Get(tx, app.GUID, "host"); other != "" {
			t.Errorf("got %q of another stack; want none", other)
		}
		return err
	})
	write(t, s, func(tx *Tx) error { return Apps.Delete(tx, app.GUID) })
	read(t, s, func(tx *Tx) error {
		left, err := BuildCaches.Digests(tx)
		if len(left) != 0 {
			t.Errorf("got %v after the app; want none", left)
		}
		return err
	})
}
