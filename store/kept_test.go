package store

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cupola/store/cf"
)

// TestKeptAreTheRows writes at random, from several goroutines, while Reads compare what
// they kept with the rows of the same transaction.
func TestKeptAreTheRows(t *testing.T) {
	t.Parallel()
	s, reads := openTest(t), 200
	if testing.Short() {
		reads = 30
	}
	ctx, end := context.WithCancel(t.Context())
	var writers sync.WaitGroup
	for n := range 3 {
		writers.Go(func() {
			for rng := rand.New(rand.NewPCG(7, uint64(n))); ctx.Err() == nil; {
				if err := s.Write(As(context.Background(), fmt.Sprint(n)), func(tx *Tx) error { return writeOrgs(tx, rng) }); err != nil && !errors.Is(err, errTakenBack) {
					t.Error(err)
				}
			}
		})
	}
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			r := s.Reads()
			defer r.Close()
			for n := range reads {
				if err := r.Read(ctx, func(tx *Tx) error { return compareKept(tx, n) }); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	readers.Wait()
	end()
	writers.Wait()
}

// writeOrgs writes orgs and what goes with them, and at times takes all of it back.
func writeOrgs(tx *Tx, rng *rand.Rand) error {
	for range 1 + rng.IntN(3) {
		guid := fmt.Sprint("org-", rng.IntN(40))
		org := &cf.Org{Resource: cf.Resource{GUID: guid}, Name: guid, Metadata: cf.Metadata{Labels: map[string]string{"n": fmt.Sprint(rng.IntN(1000))}}}
		var err error
		switch rng.IntN(60) {
		case 0: // more than a change log tells apart
			_, err = tx.exec("WITH n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 300) INSERT INTO spaces (guid, name, org_guid, created_at, updated_at, labels, annotations, allow_ssh) " +
				"SELECT hex(randomblob(8)), hex(randomblob(8)), guid, 1, 1, '{}', '{}', 1 FROM n, (SELECT guid FROM orgs ORDER BY random() LIMIT 1)")
		case 1:
			_, err = tx.exec("DELETE FROM spaces")
		case 2, 3, 4, 5, 6, 7, 8, 9, 10:
			err = errors.Join(Spaces.DeleteBy(tx, "organization_guids", guid), Orgs.Delete(tx, guid))
		case 11, 12, 13, 14, 15, 16, 17, 18, 19, 20:
			err = errors.Join(Orgs.Put(tx, org), Spaces.Insert(tx, &cf.Space{Name: fmt.Sprint(rng.Int64()), OrgGUID: guid}))
		default:
			err = Orgs.Put(tx, org)
		}
		if err != nil {
			return err
		}
	}
	if rng.IntN(5) == 0 {
		return errTakenBack
	}
	return nil
}

var errTakenBack = errors.New("taken back")

func compareKept(tx *Tx, n int) error {
	names := []string{fmt.Sprint("org-", n%7), "org-8", fmt.Sprint("org-", n%13), "org-39"}
	for _, of := range []struct{ kept, want func() (any, error) }{
		{func() (any, error) { return Orgs.Kept(tx) }, func() (any, error) { return Orgs.All(tx) }},
		{func() (any, error) { return Orgs.KeptBy(tx, "guids", names...) }, func() (any, error) { return Orgs.By(tx, "guids", names...) }},
		{func() (any, error) { return Spaces.KeptBy(tx, "organization_guids", names...) }, func() (any, error) { return Spaces.By(tx, "organization_guids", names...) }},
	} {
		kept, err := of.kept()
		if err != nil {
			return err
		}
		want, err := of.want()
		if err != nil {
			return err
		}
		if diff := cmp.Diff(want, kept); diff != "" {
			return fmt.Errorf("what is kept is not what the transaction sees: %s", diff)
		}
	}
	return nil
}

// TestKeptReadsWhatChanged counts the rows that are decoded.
func TestKeptReadsWhatChanged(t *testing.T) {
	s := openTest(t)
	decoded := 0
	orgs := *Orgs
	orgs.table.fields = fieldsOf(func(v *cf.Org, k *sealer) []any { decoded++; return Orgs.table.fields.of(v, k) })
	write(t, s, func(tx *Tx) error {
		for n := range 50 {
			if err := Orgs.Insert(tx, &cf.Org{Resource: cf.Resource{GUID: fmt.Sprint(n)}, Name: fmt.Sprint(n)}); err != nil {
				return err
			}
		}
		return nil
	})
	r := s.Reads()
	defer r.Close()
	read := func(want int, names ...string) {
		t.Helper()
		decoded = 0
		err := r.Read(t.Context(), func(tx *Tx) error {
			_, err := orgs.KeptBy(tx, "names", names...)
			return err
		})
		if err != nil || decoded != want {
			t.Errorf("%d rows were decoded, want %d (%v)", decoded, want, err)
		}
	}
	read(2, "1", "2")
	read(0, "1", "2")
	read(1, "1", "2", "3")
	write(t, s, func(tx *Tx) error { return Orgs.Update(tx, &cf.Org{Resource: cf.Resource{GUID: "2"}, Name: "2"}) })
	if !r.IsStale() {
		t.Error("a kept row changed, and nobody was told")
	}
	read(1, "1", "2", "3")
	read(0, "3")
	read(1, "3", "1") // which was not named meanwhile
	write(t, s, func(tx *Tx) error { return Orgs.Update(tx, &cf.Org{Resource: cf.Resource{GUID: "9"}, Name: "9"}) })
	if r.IsStale() {
		t.Error("a row that nobody keeps changed, and somebody was told")
	}
}
