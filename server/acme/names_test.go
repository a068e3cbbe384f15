package acme

import (
	"log/slog"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cupola/store"
	"cupola/store/cf"
)

// TestNames wants the public names that lead to apps, and the system's.
func TestNames(t *testing.T) {
	s, err := store.Open(store.Config{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	err = s.Write(t.Context(), func(tx *store.Tx) error {
		org := &cf.Org{Name: "org"}
		if err := store.Orgs.Insert(tx, org); err != nil {
			return err
		}
		space := &cf.Space{Name: "space", OrgGUID: org.GUID}
		if err := store.Spaces.Insert(tx, space); err != nil {
			return err
		}
		for _, r := range []struct {
			host, domain string
			internal     bool
			port         int
			mapped       bool
		}{
			{"WWW", "Shop.example", false, 0, true}, {"", "root.example", false, 0, true}, {"*", "wild.example", false, 0, true}, {"none", "unmapped.example", false, 0, false},
			{"back", "apps.internal", true, 0, true}, {"app", "localhost.localdomain.test", false, 0, true}, {"under_score", "under.example", false, 0, true}, {"a", "b.lan", false, 0, true},
		} {
			d := &cf.Domain{Name: r.domain, Internal: r.internal}
			if err := store.Domains.Insert(tx, d); err != nil {
				return err
			}
			route := &cf.Route{SpaceGUID: space.GUID, DomainGUID: d.GUID, Host: r.host}
			if r.mapped {
				route.Destinations = []cf.Destination{{GUID: "destination-" + r.domain, AppGUID: "app"}}
			}
			if err := store.Routes.Insert(tx, route); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		system    string
		wildcards bool
		want      []string
	}{
		{"localhost", false, []string{"root.example", "www.shop.example"}},
		{"localhost", true, []string{"*.shop.example", "*.under.example", "*.wild.example", "root.example"}},
		{"cf.example.com", false, []string{"api.cf.example.com", "console.cf.example.com", "doppler.cf.example.com", "log-cache.cf.example.com", "log-stream.cf.example.com", "login.cf.example.com",
			"root.example", "uaa.cf.example.com", "www.shop.example"}},
		{"cf.example.com", true, []string{"*.cf.example.com", "*.shop.example", "*.under.example", "*.wild.example", "root.example"}},
	} {
		err := s.Read(t.Context(), func(tx *store.Tx) error {
			got, err := names(tx, c.system, c.wildcards)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s, wildcards %t: %s", c.system, c.wildcards, diff)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
