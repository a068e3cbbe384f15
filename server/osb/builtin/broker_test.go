package builtin

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"cupola/store"
	"cupola/store/cf"
)

func TestStrangersGetNothing(t *testing.T) {
	h := Guard("me", "secret", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { reply(w, 0, "let in") }))
	for _, c := range []struct {
		user, password, version string
		want                    int
	}{
		{"", "", "2.17", 401}, {"me", "wrong", "2.17", 401}, {"you", "secret", "2.17", 401},
		{"me", "secret", "", 412}, {"me", "secret", "3.0", 412}, {"me", "secret", "2.13", 200},
	} {
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/v2/catalog", nil)
		r.SetBasicAuth(c.user, c.password)
		r.Header.Set("X-Broker-API-Version", c.version)
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, r)
		if rec.Code != c.want || strings.Contains(rec.Body.String(), "let in") != (c.want == 200) {
			t.Errorf("%v: got %d %s", c, rec.Code, rec.Body)
		}
	}
}

// TestOneRegistration opens a broker again and again: it keeps its registration, its address and its
// password, and has its catalog read when that may be another one.
func TestOneRegistration(t *testing.T) {
	s, err := store.Open(store.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var first *Broker
	for _, c := range []struct {
		revision string
		state    cf.BrokerState // before
		jobs     int            // after
	}{{"1", "", 1}, {"1", cf.BrokerAvailable, 1}, {"2", cf.BrokerAvailable, 2}, {"2", cf.BrokerSyncFailed, 3}, {"", cf.BrokerAvailable, 4}, {"", cf.BrokerAvailable, 5}} {
		if first != nil {
			write(t, s, func(tx *store.Tx) error {
				row, err := store.ServiceBrokers.Get(tx, first.GUID)
				if err != nil {
					return err
				}
				row.State = c.state
				return store.ServiceBrokers.Update(tx, row)
			})
		}
		b, err := Open(t.Context(), Config{Name: "mine", Setting: "my_broker", Revision: c.revision, Store: s})
		if err != nil {
			t.Fatal(err)
		}
		b.Close()
		if first == nil {
			first = b
		}
		if b.GUID != first.GUID || b.Password != first.Password || b.listener.Addr().String() != first.listener.Addr().String() {
			t.Errorf("%v: got another registration", c)
		}
		write(t, s, func(tx *store.Tx) error {
			jobs, err := store.Jobs.All(tx)
			if len(jobs) != c.jobs {
				t.Errorf("%v: got %d jobs", c, len(jobs))
			}
			return err
		})
	}
}

// TestPlansArePublishedOnce takes a plan back from all orgs, as an admin may: it stays so.
func TestPlansArePublishedOnce(t *testing.T) {
	s, err := store.Open(store.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	b, err := Open(t.Context(), Config{Name: "mine", Setting: "my_broker", Store: s})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	plan := &cf.ServicePlan{Resource: cf.Resource{GUID: "plan"}, OfferingGUID: "offering", Name: "small"}
	write(t, s, func(tx *store.Tx) error {
		if err := store.ServiceOfferings.Insert(tx, &cf.ServiceOffering{Resource: cf.Resource{GUID: "offering"}, BrokerGUID: b.GUID, Name: "offering"}); err != nil {
			return err
		}
		return store.ServicePlans.Insert(tx, plan)
	})
	for _, want := range []bool{true, false} {
		write(t, s, b.publishNewPlans)
		write(t, s, func(tx *store.Tx) error {
			p, err := store.ServicePlans.Get(tx, "plan")
			if err != nil || p.Public != want {
				t.Errorf("got a plan that is public: %v, %v; want %v", p.Public, err, want)
			}
			p.Public = false
			return store.ServicePlans.Update(tx, p)
		})
	}
}

func write(t *testing.T, s *store.Store, f func(tx *store.Tx) error) {
	t.Helper()
	if err := s.Write(context.WithoutCancel(t.Context()), f); err != nil {
		t.Fatal(err)
	}
}
