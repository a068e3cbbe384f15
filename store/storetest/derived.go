package storetest

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"cupola/store"
)

// Rows are writes of the rows that a value is derived from, and removals of them.
// Parents come first.
type Rows struct{ Puts, Deletes []func(*store.Tx) error }

// Derived writes each row of each version alone, and then at random. It wants what read
// derived to equal the function of the rows after each write, though it runs again only
// when what it read is stale, as store.Derive has it. fresh is read without what earlier
// runs of that kept. rows gives a version of the rows of a name, of which 0 makes all of
// them count.
func Derived[T any](t *testing.T, s *store.Store, read, fresh func(*store.Tx) (T, error), rows func(name string, version int) Rows) {
	t.Helper()
	r := s.Reads()
	defer r.Close()
	d := &derived[T]{s: s, r: r, read: read, fresh: fresh}
	begin := func(t fataler) {
		t.Helper()
		for _, n := range []string{"a", "b"} {
			d.check(t, func(tx *store.Tx) error { return all(tx, rows(n, 0).Puts) })
		}
	}
	for version := range 3 {
		one := rows("a", version)
		for _, write := range slices.Concat(one.Puts, one.Deletes) {
			begin(t)
			d.check(t, write)
		}
	}
	writes := 0
	rapid.Check(t, func(rt *rapid.T) {
		begin(rt)
		for range 25 {
			writes++
			one := rows(rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "name"), rapid.IntRange(0, 2).Draw(rt, "version"))
			n := rapid.IntRange(0, len(one.Puts)+len(one.Deletes)-1).Draw(rt, "write")
			d.check(rt, slices.Concat(one.Puts, one.Deletes)[n])
		}
	})
	t.Logf("%d runs for %d writes", d.runs, writes)
}

type derived[T any] struct {
	s           *store.Store
	r           *store.Reads
	read, fresh func(*store.Tx) (T, error)
	value       T
	runs        int
}

type fataler interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

// check writes, and compares.
func (d *derived[T]) check(rt fataler, write func(*store.Tx) error) {
	rt.Helper()
	if err := d.s.Write(context.Background(), write); err != nil && !refused(err) {
		rt.Fatal(err)
	}
	if d.r.IsStale() {
		d.runs++
		if err := d.r.Read(context.Background(), func(tx *store.Tx) (err error) { d.value, err = d.read(tx); return err }); err != nil {
			rt.Fatal(err)
		}
	}
	var want T
	if err := d.s.Read(context.Background(), func(tx *store.Tx) (err error) { want, err = d.fresh(tx); return err }); err != nil {
		rt.Fatal(err)
	}
	if reflect.DeepEqual(want, d.value) { // cmp.Diff took a quarter of a test's time
		return
	}
	if diff := cmp.Diff(want, d.value, cmp.Exporter(func(reflect.Type) bool { return true })); diff != "" {
		rt.Fatalf("what was derived is not what the rows say: %s", diff)
	}
}

// all writes all rows that are not refused.
func all(tx *store.Tx, writes []func(*store.Tx) error) error {
	for _, write := range writes {
		if err := write(tx); err != nil && !refused(err) {
			return err
		}
	}
	return nil
}

// refused reports whether the database refused a random write, of a row that is
// there already, or belongs to one that is not.
func refused(err error) bool {
	return store.IsTaken(err) || store.IsNotFound(err) || strings.Contains(err.Error(), "FOREIGN KEY")
}

// Put writes a row.
func Put[T any](t *store.Table[T], v *T) func(*store.Tx) error {
	return func(tx *store.Tx) error { return t.Put(tx, v) }
}

// Delete removes a row, and what belongs to it.
func Delete[T any](t *store.Table[T], guid string) func(*store.Tx) error {
	return func(tx *store.Tx) error { return t.Delete(tx, guid) }
}
