package durable_test

import (
	"testing"
	"testing/synctest"
	"time"

	"cupola/runtime/durable"
)

func TestProofs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p durable.Proofs[int]
		var reads int
		var bad error
		verify := func(id int) error {
			return p.Verify("a", func() (int, error) { return id, nil }, func() error { reads++; return bad })
		}
		want := func(what string, n int, err error) {
			t.Helper()
			if got := verify(1); got != err || reads != n {
				t.Errorf("%s: got %d reads, %v; want %d, %v", what, reads, got, n, err)
			}
		}
		bad = durable.ErrDamaged
		want("damaged", 1, bad)
		want("damaged again", 2, bad)
		bad = nil
		want("sound", 3, nil)
		want("trusted", 3, nil)
		time.Sleep(durable.TrustTime)
		want("an hour later", 4, nil)
		if err := verify(2); err != nil || reads != 5 {
			t.Errorf("written again: got %d reads, %v; want 5", reads, err)
		}
		p.Found("a", 1)
		want("found sound", 5, nil)
		p.Forget("a")
		want("forgotten", 6, nil)
	})
}
