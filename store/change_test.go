package store

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cupola/runtime/lrp"
)

// TestFollow wants every change of a row, in order, and none of a transaction
// that was not committed.
func TestFollow(t *testing.T) {
	s := openTest(t)
	ctx := context.Background()
	type step struct {
		before, after lrp.ActualState
		index         uint32
		crash         bool
	}
	var got []step
	stop := s.Follow(func(changes []Change) {
		for _, c := range changes {
			var one step
			if a, ok := c.Before.(*lrp.Actual); ok {
				one.before = a.State
			}
			if a, ok := c.After.(*lrp.Actual); ok {
				one.after, one.index = a.State, a.Tag.Index
			}
			one.crash = c.Crash
			got = append(got, one)
		}
	})
	key := lrp.Key{ProcessGUID: "p"}
	row := func(state lrp.ActualState) lrp.Actual { return lrp.Actual{Key: key, Domain: "d", State: state} }
	write := func(f func(*Tx) error) error { return s.Write(ctx, f) }
	must := func(_ bool, err error) error { return err }
	if err := write(func(tx *Tx) error {
		if err := ActualLRPs.Insert(tx, row(lrp.Unclaimed)); err != nil {
			return err
		}
		return must(ActualLRPs.Swap(tx, row(lrp.Unclaimed), row(lrp.Claimed)))
	}); err != nil {
		t.Fatal(err)
	}
	undone := errors.New("undone")
	if err := write(func(tx *Tx) error {
		return errors.Join(must(ActualLRPs.Swap(tx, row(lrp.Claimed), row(lrp.Running))), undone)
	}); !errors.Is(err, undone) {
		t.Fatal(err)
	}
	for _, f := range []func(*Tx) error{
		func(tx *Tx) error { return must(ActualLRPs.Swap(tx, row(lrp.Running), row(lrp.Claimed))) }, // no such row
		func(tx *Tx) error { return must(ActualLRPs.Crash(tx, row(lrp.Claimed), row(lrp.Crashed))) },
		func(tx *Tx) error { return must(ActualLRPs.Retire(tx, key)) },
	} {
		if err := write(f); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	if err := write(func(tx *Tx) error { return ActualLRPs.Insert(tx, row(lrp.Unclaimed)) }); err != nil {
		t.Fatal(err)
	}
	want := []step{{after: lrp.Unclaimed}, {before: lrp.Unclaimed, after: lrp.Claimed, index: 1},
		{before: lrp.Claimed, after: lrp.Crashed, index: 2, crash: true}, {before: lrp.Crashed}}
	if d := cmp.Diff(want, got, cmp.AllowUnexported(step{})); d != "" {
		t.Error(d)
	}
}
