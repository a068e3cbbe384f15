package seed

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cupola/server/control/stacks"
	"cupola/store"
	"cupola/store/blob"
	"cupola/store/cf"
)

// rows says what there is in a database, by name.
func rows(t *testing.T, s *store.Store) (found []string) {
	t.Helper()
	err := s.Read(context.Background(), func(tx *store.Tx) error {
		return errors.Join(
			list(tx, &found, store.Orgs, func(o *cf.Org) string { return fmt.Sprint("org ", o.Name, " has a quota: ", o.QuotaGUID != "") }),
			list(tx, &found, store.Spaces, func(s *cf.Space) string { return fmt.Sprint("space ", s.Name, ", ssh ", s.AllowSSH) }),
			list(tx, &found, store.OrgQuotas, func(q *cf.OrgQuota) string {
				return fmt.Sprint("quota ", q.Name, " ", *q.Limits.TotalMemoryMB, " ", *q.Limits.TotalRoutes, " ", *q.Limits.TotalReservedRoutePorts, " paid ", q.Limits.PaidServices)
			}),
			list(tx, &found, store.SecurityGroups, func(g *cf.SecurityGroup) string {
				return fmt.Sprint("group ", g.Name, " ", len(g.Rules), " rules ", g.GlobalRunning, g.GlobalStaging)
			}),
			list(tx, &found, store.Domains, func(d *cf.Domain) string { return fmt.Sprint("domain ", d.Name, " internal ", d.Internal) }),
			list(tx, &found, store.Stacks, func(s *cf.Stack) string { return fmt.Sprint("stack ", s.Name, " default ", s.Default) }),
			list(tx, &found, store.Events, func(e *cf.Event) string { return "event " + e.Type }))
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func list[T any](tx *store.Tx, found *[]string, t *store.Table[T], name func(*T) string) error {
	all, err := t.All(tx)
	for _, r := range all {
		*found = append(*found, name(r))
	}
	return err
}

// TestSeeds starts twice on a data directory: the rows are made once, without audit
// events.
func TestSeeds(t *testing.T) {
	dir := t.TempDir()
	s, err := store.Open(store.Config{Dir: filepath.Join(dir, "db"), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	blobs, err := blob.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	seeds := &Seeds{Store: s, Blobs: blobs, DataDir: dir, Domain: "apps.test", Log: slog.New(slog.DiscardHandler),
		Stacks: func() []stacks.System { return []stacks.System{{Name: "minifs", Default: true}} }}
	want := []string{"org cupola has a quota: true", "space dev, ssh true", "quota default 102400 1000 100 paid true",
		"group public_networks 5 rules true true", "group dns 2 rules true true",
		"domain apps.test internal false", "domain apps.internal internal true", "stack minifs default true"}
	for range 2 {
		if err := seeds.Open(t.Context()); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, rows(t, s)); d != "" {
			t.Error(d)
		}
	}
}
