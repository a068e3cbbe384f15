package api

import (
	"fmt"
	"testing"

	"cupola/server/control/quota"
	"cupola/store"
	"cupola/store/cf"
)

// BenchmarkWithinQuota makes a change beside 1,000 started apps.
func BenchmarkWithinQuota(b *testing.B) {
	w := newWorld(b)
	w.write(func(tx *store.Tx) error {
		for n := range 1000 {
			app := fmt.Sprintf("app-%d", 100+n)
			if err := seedApp(tx, app, app); err != nil {
				return err
			}
			a, err := store.Apps.Get(tx, app)
			if err != nil {
				return err
			}
			a.State = cf.Started
			if err := store.Apps.Update(tx, a); err != nil {
				return err
			}
		}
		return nil
	})
	for b.Loop() {
		w.write(func(tx *store.Tx) error {
			return quota.WithinProcesses(false)(tx, "space-1", func() error { return nil })
		})
	}
}
