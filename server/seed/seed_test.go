package seed

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/bcrypt"

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

// open are the seeds of a daemon that starts on a directory, of the admin's password.
func open(t *testing.T, s *store.Store, dir, password string) {
	t.Helper()
	blobs, err := blob.Open(filepath.Join(dir, "blobs"))
	if err != nil {
		t.Fatal(err)
	}
	seeds := &Seeds{Store: s, Blobs: blobs, DataDir: dir, Domain: "apps.test", Password: password, Log: slog.New(slog.DiscardHandler),
		Stacks: func() []stacks.System { return []stacks.System{{Name: "minifs", Default: true}} }}
	seeds.Begin(t.Context())
	if err := seeds.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func newStore(t *testing.T, dir string) *store.Store {
	t.Helper()
	s, err := store.Open(store.Config{Dir: filepath.Join(dir, "db"), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// TestSeeds starts twice on a data directory: the rows are made once, without audit
// events.
func TestSeeds(t *testing.T) {
	dir := t.TempDir()
	s := newStore(t, dir)
	want := []string{"org cupola has a quota: true", "space dev, ssh true", "quota default 102400 1000 100 paid true",
		"group public_networks 5 rules true true", "group dns 2 rules true true",
		"domain apps.test internal false", "domain apps.internal internal true", "stack minifs default true"}
	for range 2 {
		open(t, s, dir, "")
		if d := cmp.Diff(want, rows(t, s)); d != "" {
			t.Error(d)
		}
	}
}

// TestAdminPassword starts with passwords: the user admin has the configured one, else
// the one of before, and its row is not written where that does not change.
func TestAdminPassword(t *testing.T) {
	dir := t.TempDir()
	s := newStore(t, dir)
	admin := func() (user *cf.User) {
		err := s.Read(t.Context(), func(tx *store.Tx) (err error) {
			user, err = store.Users.First(tx, store.Query{Where: map[string][]string{"usernames": {"admin"}}})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return user
	}
	var before string
	for _, password := range []string{"", "given", "", "other"} {
		open(t, s, dir, password)
		kept, err := AdminPassword(dir)
		if err != nil || password != "" && kept != password {
			t.Fatalf("got %q, %v for %q", kept, err, password)
		}
		hash := admin().PasswordHash
		if bcrypt.CompareHashAndPassword([]byte(hash), []byte(kept)) != nil {
			t.Errorf("the user has another password than %q", kept)
		}
		if (hash == before) != (password == "" && before != "") {
			t.Errorf("got hash %q after %q with %q", hash, before, password)
		}
		before = hash
	}
}
