package acme

import (
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

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
		{"cf.example.com", false, []string{"api.cf.example.com", "autoscaler.cf.example.com", "console.cf.example.com", "doppler.cf.example.com", "log-cache.cf.example.com", "log-stream.cf.example.com", "login.cf.example.com",
			"root.example", "scheduler.cf.example.com", "uaa.cf.example.com", "www.shop.example"}},
		{"cf.example.com", true, []string{"*.cf.example.com", "*.shop.example", "*.under.example", "*.wild.example", "root.example"}},
	} {
		err := s.Read(t.Context(), func(tx *store.Tx) error {
			all, err := names(tx, c.system, c.wildcards)
			var got []string
			for _, w := range all {
				got = append(got, w.name)
				if ours := strings.HasSuffix(w.name, ".cf.example.com"); ours != (w.org == "") {
					t.Errorf("%s: got the org %q", w.name, w.org)
				}
			}
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

// TestOrdersAreLimited lets an org begin half of all orders, and the others the rest, until
// the time is over.
func TestOrdersAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &Manager{}
		begun := func(org string) (n int) {
			for range 2 * maxOrders {
				if w := (&managed{org: org}); m.orderLocked(w) == nil {
					n++
				} else if w.pending || !strings.HasPrefix(w.failure, "waits: ") {
					t.Errorf("got %+v; want it to wait", w)
				}
			}
			return n
		}
		for _, c := range []struct {
			org  string
			want int
		}{{"one", maxOrgOrders}, {"one", 0}, {"two", maxOrgOrders}, {"three", 0}, {"", 0}} {
			if n := begun(c.org); n != c.want {
				t.Errorf("%q: got %d orders; want %d", c.org, n, c.want)
			}
		}
		time.Sleep(orderWindow + time.Second)
		if n := begun(""); n != maxOrders {
			t.Errorf("the system, later: got %d orders; want %d", n, maxOrders)
		}
	})
}
