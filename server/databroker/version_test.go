package databroker

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestVersionsAreShared asks once for many callers, also for those who come while the first one leaves, and again when the answer is
// old, or none.
func TestVersionsAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, asked := versions{asked: map[string]*sharedVersion{}}, 0
		said := "PostgreSQL 15"
		answer, fails := &said, error(nil)
		ask := func(context.Context) (*string, error) {
			asked++
			time.Sleep(time.Second)
			return answer, fails
		}
		leaving, leave := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() {
			if _, err := v.of(leaving, "i", ask); !errors.Is(err, context.Canceled) {
				t.Errorf("who leaves: got %v", err)
			}
		})
		for range 8 {
			all.Go(func() {
				if got, err := v.of(t.Context(), "i", ask); err != nil || got == nil || *got != said {
					t.Errorf("got %v, %v; want %s", got, err, said)
				}
			})
		}
		synctest.Wait()
		leave()
		all.Wait()
		want := func(n int, which string) {
			t.Helper()
			_, _ = v.of(t.Context(), "i", ask)
			if asked != n {
				t.Errorf("%s: asked %d times; want %d", which, asked, n)
			}
		}
		want(1, "at once")
		time.Sleep(2 * versionAge)
		answer = nil
		want(2, "later")
		fails = errors.New("the client failed")
		want(3, "after none")
		want(4, "after a fault")
	})
}
