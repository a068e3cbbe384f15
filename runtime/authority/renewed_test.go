package authority

import (
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"
)

func TestRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		made, fault := 0, error(nil)
		r, err := NewRenewed(24*time.Hour, func() (int, error) {
			made++
			return made, fault
		}, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		want := func(n int) {
			t.Helper()
			if got := r.Get(); got != n {
				t.Errorf("got %d; want %d", got, n)
			}
		}
		want(1)
		time.Sleep(23 * time.Hour)
		want(1)
		time.Sleep(time.Hour)
		want(2)
		fault = errors.New("disk full")
		time.Sleep(24 * time.Hour)
		want(2)
		fault = nil
		time.Sleep(59 * time.Minute)
		want(2)
		time.Sleep(time.Minute)
		want(4)
	})
}
