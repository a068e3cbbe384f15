package director

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"cupola/store"
	"cupola/store/cf"
)

// TestOrphansExpire deletes an orphaned disk after five days, with its volume, and records
// that.
func TestOrphansExpire(t *testing.T) {
	l, shelf, _ := newLoop(t)
	move(t, l)
	write(t, l, func(tx *store.Tx) (err error) {
		for guid, age := range map[string]time.Duration{"old": KeepOrphans, "new": KeepOrphans - time.Hour} {
			shelf.names = append(shelf.names, diskVolume(guid))
			err = errors.Join(err, store.BOSHDisks.Insert(tx, &cf.BOSHDisk{Resource: cf.Resource{GUID: guid}, DeploymentName: "nats", SizeMB: 1, OrphanedAt: tx.Now.Add(-age)}))
		}
		return err
	})
	move(t, l)
	if slices.Contains(shelf.names, diskVolume("old")) || !slices.Contains(shelf.names, diskVolume("new")) {
		t.Errorf("got %q; want the old one gone", shelf.names)
	}
	write(t, l, func(tx *store.Tx) error {
		if rows, err := store.BOSHDisks.All(tx); err != nil || len(rows) != 2 {
			t.Errorf("got %d disks, %v; want that of the instance, and the new one", len(rows), err)
		}
		e, err := store.BOSHEvents.First(tx, store.Query{Where: map[string][]string{"actions": {"delete"}}})
		if err != nil || e.ObjectName != "old" || e.ObjectType != ofDisk {
			t.Errorf("got %+v, %v; want the event of its end", e, err)
		}
		return nil
	})
	if _, next := expired([]*cf.BOSHDisk{{OrphanedAt: time.Unix(1000, 0)}, {OrphanedAt: time.Unix(500, 0)}, {}}, time.Unix(1000, 0)); !next.Equal(time.Unix(500, 0).Add(KeepOrphans)) {
		t.Errorf("got %v; want the first end", next)
	}
}

// TestDisksOfAStoppedInstance are exchanged; those of a running one are not.
func TestDisksOfAStoppedInstance(t *testing.T) {
	l, _, _ := newLoop(t)
	move(t, l)
	_, i := row(t, l, "1")
	first := i.DiskGUID
	orphanIt := func(tx *store.Tx) error {
		d, err := store.BOSHDisks.Get(tx, first)
		if err != nil {
			return err
		}
		return OrphanDisk(tx, "admin", d)
	}
	refused := func(want string, do func(tx *store.Tx) error) {
		t.Helper()
		if err := l.Store.Write(t.Context(), do); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v; want %q", err, want)
		}
	}
	attachTo := func(size int, index int) func(tx *store.Tx) error {
		return func(tx *store.Tx) error {
			d, err := store.BOSHDisks.Get(tx, first)
			if err != nil {
				return err
			}
			d.SizeMB = size
			return AttachDisk(tx, "admin", d, "nats", "nats", index)
		}
	}
	refused("Instance nats/0 is not stopped: stop it first", orphanIt)
	refused("only an orphaned disk can be attached", attachTo(1, 0))
	write(t, l, func(tx *store.Tx) error { _, err := Ask(tx, "nats", "admin", Stop, Order{}); return err })
	refused("Task 2 changes deployment 'nats': wait for its end", orphanIt)
	move(t, l)
	write(t, l, orphanIt)
	_, i = row(t, l, "2")
	second := i.DiskGUID
	if second == first || second == "" {
		t.Errorf("got %q; want another disk", second)
	}
	refused("has 2 MB, more than the 1 MB of persistent_disk", attachTo(2, 0))
	refused("'nats/nats/1' doesn't exist", attachTo(1, 1))
	write(t, l, attachTo(1, 0))
	if _, i = row(t, l, "2"); i.DiskGUID != first {
		t.Errorf("got %q; want the first disk", i.DiskGUID)
	}
	write(t, l, func(tx *store.Tx) error {
		d, err := store.BOSHDisks.Get(tx, second)
		if err == nil && d.OrphanedAt.IsZero() {
			t.Error("the other disk is not orphaned")
		}
		var actions []string
		events, listErr := store.BOSHEvents.By(tx, "object_types", ofDisk)
		for _, e := range events {
			actions = append(actions, e.Action)
		}
		if got, want := strings.Join(actions, " "), "create orphan orphan attach"; got != want {
			t.Errorf("got %s; want %s", got, want)
		}
		return errors.Join(err, listErr)
	})
}
