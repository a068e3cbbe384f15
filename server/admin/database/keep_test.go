package database

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"cupola/server/admin/archive"
	"cupola/server/datadir"
)

// TestACopyIsDue looks at copies under a clock that goes on, jumps and goes back.
func TestACopyIsDue(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name string
		ages []time.Duration // of the copies
		due  bool
	}{
		{"none", nil, true},
		{"the first one, just made", []time.Duration{time.Minute}, false},
		{"the first one, an hour old", []time.Duration{time.Hour}, true},
		{"two, an hour old", []time.Duration{time.Hour, 2 * time.Hour}, false},
		{"two, a day old", []time.Duration{24 * time.Hour, 25 * time.Hour}, true},
		{"a clock that was a little ahead", []time.Duration{-time.Minute, time.Hour}, false},
		{"a clock that was a year ahead", []time.Duration{-365 * 24 * time.Hour, time.Hour}, true},
	} {
		d, err := datadir.Open(t.TempDir(), slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		dir := d.Path(datadir.DatabaseCopies)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		for _, age := range c.ages {
			name := now.Add(-age).Format("cupola-20060102T150405Z.db.zst")
			if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if all, err := archive.DatabaseCopies(dir); err != nil || len(all) != len(c.ages) {
			t.Fatalf("%s: got %v, %v", c.name, all, err)
		}
		if got := (&Keeper{Dir: d}).copyDue(now); got != c.due {
			t.Errorf("%s: got %t; want %t", c.name, got, c.due)
		}
	}
}
