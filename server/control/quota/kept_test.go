package quota_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"cupola/server/authz"
	"cupola/server/control"
	"cupola/server/control/apps"
	"cupola/server/control/manifests"
	"cupola/server/control/orgs"
	"cupola/server/control/quota"
	"cupola/server/control/routes"
	"cupola/server/manifest"
	"cupola/store"
	"cupola/store/cf"
)

var errUndo = errors.New("undo")

// openStore opens a database with two orgs with a space each, a domain of all,
// a service plan and an app with a started process.
func openStore(t *testing.T) *store.Store {
	t.Helper()
	s, err := store.Open(store.Config{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	err = s.Write(t.Context(), func(tx *store.Tx) error {
		err := store.Domains.Insert(tx, &cf.Domain{Resource: cf.Resource{GUID: "domain"}, Name: "apps.test"})
		for _, n := range []string{"1", "2"} {
			err = errors.Join(err, store.Orgs.Insert(tx, &cf.Org{Resource: cf.Resource{GUID: "org-" + n}, Name: "org-" + n}),
				store.Spaces.Insert(tx, &cf.Space{Resource: cf.Resource{GUID: "space-" + n}, Name: "dev", OrgGUID: "org-" + n}))
		}
		app := &cf.App{Resource: cf.Resource{GUID: "app"}, Name: "app", SpaceGUID: "space-1", State: cf.Started, Lifecycle: cf.Lifecycle{Type: cf.LifecycleDocker}}
		err = errors.Join(err, store.ServiceBrokers.Insert(tx, &cf.ServiceBroker{Resource: cf.Resource{GUID: "broker"}, Name: "broker", State: cf.BrokerAvailable}),
			store.ServiceOfferings.Insert(tx, &cf.ServiceOffering{Resource: cf.Resource{GUID: "offering"}, Name: "offering", BrokerGUID: "broker"}),
			store.ServicePlans.Insert(tx, &cf.ServicePlan{Resource: cf.Resource{GUID: "plan"}, Name: "plan", OfferingGUID: "offering"}))
		return errors.Join(err, store.Apps.Insert(tx, app), store.Processes.Insert(tx, apps.NewProcess(app, "web")))
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// inSession runs f in an admin's session, and then undoes what it did.
func inSession(t testing.TB, s *store.Store, f func(*control.Session) error) {
	t.Helper()
	err := s.Write(t.Context(), func(tx *store.Tx) error {
		c := &control.Session{Tx: tx, Writes: true, Rule: authz.Admin, Platform: &control.Platform{Note: func(string, string) {}}}
		err := c.Act(cf.Actor{GUID: "admin", Type: "user"}, []string{"cloud_controller.admin"})
		return errors.Join(errUndo, err, f(c))
	})
	if many, is := err.(interface{ Unwrap() []error }); !is || len(many.Unwrap()) > 1 {
		t.Fatal(err)
	}
}

// verbs draws verbs and applies them to a session.
type verbs struct {
	*rapid.T
	c    *control.Session
	made int
}

func (v *verbs) name() string { v.made++; return fmt.Sprintf("n%d", v.made) }

func (v *verbs) space() string {
	spaces, err := store.Spaces.All(v.c.Tx)
	v.must(err)
	return rapid.SampledFrom(spaces).Draw(v.T, "space").GUID
}

// must ends the test at an error of the daemon, and leaves those of users and
// removals that did not come to their end.
func (v *verbs) must(err error) {
	if e := (*cf.Error)(nil); err != nil && !errors.As(err, &e) && !errors.Is(err, control.ErrMore) {
		v.Fatal(err)
	}
}

// some applies a verb to a random row of a table, if it has any.
func some[T any](v *verbs, t *store.Table[T], f func(*T) error) {
	rows, err := t.All(v.c.Tx)
	v.must(err)
	if len(rows) > 0 {
		v.must(f(rapid.SampledFrom(rows).Draw(v.T, t.Name())))
	}
}

func (v *verbs) addRoute() {
	some(v, store.Domains, func(d *cf.Domain) error {
		return routes.Insert(v.c, &cf.Route{SpaceGUID: v.space(), DomainGUID: d.GUID, Host: v.name()}, d, nil)
	})
}

// addPort adds a row that only a machine with ports for routes would.
func (v *verbs) addPort() {
	v.made++
	v.must(store.Routes.Insert(v.c.Tx, &cf.Route{SpaceGUID: v.space(), DomainGUID: "domain", Port: 1000 + v.made}))
}

func (v *verbs) removeRoute() {
	some(v, store.Routes, func(r *cf.Route) error { return routes.Remove(v.c, r) })
}

func (v *verbs) moveRoute() {
	some(v, store.Routes, func(r *cf.Route) error { return routes.Move(v.c, r, v.space()) })
}

func (v *verbs) updateRoute() {
	some(v, store.Routes, func(r *cf.Route) error { return routes.Update(v.c, r, nil, nil) })
}

func (v *verbs) addDomain() {
	org := rapid.SampledFrom([]string{"org-1", "org-2"}).Draw(v.T, "org")
	var d routes.NewDomain
	v.must(json.Unmarshal(fmt.Appendf(nil, `{"name": "%s.test", "relationships": {"organization": {"data": {"guid": %q}}}}`, v.name(), org), &d))
	_, err := routes.CreateDomain(v.c, d)
	v.must(err)
}

func (v *verbs) removeDomain() {
	some(v, store.Domains, func(d *cf.Domain) error {
		if d.GUID == "domain" {
			return nil
		}
		return routes.DeleteDomain(v.c, d)
	})
}

func (v *verbs) addSpace() {
	org := rapid.SampledFrom([]string{"org-1", "org-2"}).Draw(v.T, "org")
	v.must(store.Spaces.Insert(v.c.Tx, &cf.Space{Name: v.name(), OrgGUID: org}))
}

func (v *verbs) removeSpace() {
	some(v, store.Spaces, func(s *cf.Space) error {
		if s.GUID == "space-1" || s.GUID == "space-2" {
			return nil
		}
		if err := control.EachOf(v.c, store.Routes, "owner_space_guids", s.GUID, func(r *cf.Route) error { return routes.Drop(v.c, r) }); err != nil {
			return err
		}
		return control.OrElse(store.Spaces.Delete(v.c.Tx, s.GUID), orgs.LeaveSecurityGroups(v.c, s.GUID))
	})
}

func (v *verbs) scale() {
	some(v, store.Processes, func(p *cf.Process) error {
		p.Instances = rapid.IntRange(0, 5).Draw(v.T, "instances")
		return quota.Within(v.c, "space-1", quota.Processes, func() error { return store.Processes.Update(v.c.Tx, p) })
	})
}

func (v *verbs) stopOrStart() {
	some(v, store.Apps, func(a *cf.App) error {
		a.State = rapid.SampledFrom([]cf.AppState{cf.Started, cf.Stopped}).Draw(v.T, "state")
		return apps.Save(v.c, a)
	})
}

func (v *verbs) addService() {
	v.must(store.ServiceInstances.Insert(v.c.Tx, &cf.ServiceInstance{Name: v.name(), Type: cf.Managed, PlanGUID: "plan", SpaceGUID: "space-1"}))
}

func (v *verbs) addKey() {
	name := v.name()
	some(v, store.ServiceInstances, func(i *cf.ServiceInstance) error {
		return store.ServiceBindings.Insert(v.c.Tx, &cf.ServiceBinding{Type: cf.BindingKey, Name: &name, InstanceGUID: i.GUID})
	})
}

func (v *verbs) removeService() {
	some(v, store.ServiceInstances, func(i *cf.ServiceInstance) error {
		keys, err := store.ServiceBindings.By(v.c.Tx, "service_instance_guids", i.GUID)
		for _, k := range keys {
			err = control.OrElse(err, store.ServiceBindings.Delete(v.c.Tx, k.GUID))
		}
		return control.OrElse(err, store.ServiceInstances.Delete(v.c.Tx, i.GUID))
	})
}

// count counts the routes of an area one by one.
func (v *verbs) count(a quota.Area, port bool) (n int) {
	all, err := store.Routes.All(v.c.Tx)
	v.must(err)
	for _, r := range all {
		s, err := store.Spaces.Get(v.c.Tx, r.SpaceGUID)
		v.must(err)
		if (a == quota.OfSpace(s.GUID) || a == quota.OfOrg(s.OrgGUID)) && (!port || r.Port > 0) {
			n++
		}
	}
	return n
}

// compare compares what is kept of each area with what is there.
func (v *verbs) compare(t *rapid.T) {
	for _, n := range []string{"1", "2"} {
		for _, a := range []quota.Area{quota.OfOrg("org-" + n), quota.OfSpace("space-" + n)} {
			of := quota.Kind(rapid.IntRange(1, int(quota.All)).Draw(t, "kinds"))
			kept, err := quota.UsageNow(v.c, a, quota.OfOrg("org-"+n), of)
			v.must(err)
			fresh, err := quota.UsageOf(v.c, a, quota.OfOrg("org-"+n), of)
			v.must(err)
			if len(kept.Sizes) == 0 && len(fresh.Sizes) == 0 {
				kept.Sizes, fresh.Sizes = nil, nil
			}
			if !reflect.DeepEqual(kept, fresh) {
				t.Fatalf("kept of %v: %+v; counted: %+v", a, kept, fresh)
			}
			if of&quota.Routes != 0 && (kept.Routes != v.count(a, false) || kept.Ports != v.count(a, true)) {
				t.Fatalf("kept of %v: %d routes, %d ports; there are %d, %d", a, kept.Routes, kept.Ports, v.count(a, false), v.count(a, true))
			}
		}
	}
}

// TestKeptIsCounted applies random verbs in one session: what it keeps equals
// what is counted.
func TestKeptIsCounted(t *testing.T) {
	s := openStore(t)
	rapid.Check(t, func(rt *rapid.T) {
		inSession(t, s, func(c *control.Session) error {
			v := &verbs{T: rt, c: c}
			do := func(verb func()) func(*rapid.T) { return func(t *rapid.T) { v.T = t; verb() } }
			rt.Repeat(map[string]func(*rapid.T){
				"": v.compare, "add route": do(v.addRoute), "add port": do(v.addPort), "remove route": do(v.removeRoute), "move route": do(v.moveRoute), "update route": do(v.updateRoute),
				"add domain": do(v.addDomain), "remove domain": do(v.removeDomain), "add space": do(v.addSpace), "remove space": do(v.removeSpace),
				"scale": do(v.scale), "stop or start": do(v.stopOrStart), "add service": do(v.addService), "add key": do(v.addKey), "remove service": do(v.removeService),
			})
			return nil
		})
	})
}

// statementsOf is how many statements a manifest with routes takes in a session. The
// quotas of space and org have limits.
func statementsOf(t *testing.T, s *store.Store, routes int, limits cf.QuotaLimits) (statements int64) {
	inSession(t, s, func(c *control.Session) error {
		org, err := store.Orgs.Get(c.Tx, "org-1")
		space, serr := store.Spaces.Get(c.Tx, "space-1")
		app, aerr := store.Apps.Get(c.Tx, "app")
		if err := errors.Join(err, serr, aerr); err != nil {
			return err
		}
		org.QuotaGUID, space.QuotaGUID = "of-org", "of-space"
		err = errors.Join(store.OrgQuotas.Insert(c.Tx, &cf.OrgQuota{Resource: cf.Resource{GUID: "of-org"}, Name: "q", Limits: limits}),
			store.SpaceQuotas.Insert(c.Tx, &cf.SpaceQuota{Resource: cf.Resource{GUID: "of-space"}, Name: "q", OrgGUID: "org-1", Limits: limits}),
			store.Orgs.Update(c.Tx, org), store.Spaces.Update(c.Tx, space))
		m := &manifest.App{Name: "app", RoutesSet: true}
		for i := range routes {
			m.Routes = append(m.Routes, manifest.Route{URL: fmt.Sprintf("r-%d.apps.test", i)})
		}
		before := c.Tx.Statements()
		err = errors.Join(err, manifests.Apply(c, app, m))
		statements = c.Tx.Statements() - before
		return err
	})
	return statements
}

// TestRouteQuotasCostLittle applies a manifest of 200 routes: the quotas of org and
// space cost a statement each for a route.
func TestRouteQuotasCostLittle(t *testing.T) {
	s := openStore(t)
	limit, most := 200, int64(2*200+10)
	unlimited := statementsOf(t, s, 200, cf.QuotaLimits{})
	limited := statementsOf(t, s, 200, cf.QuotaLimits{TotalRoutes: &limit, TotalReservedRoutePorts: &limit})
	if limited-unlimited > most {
		t.Errorf("the quotas cost %d statements; want at most %d", limited-unlimited, most)
	}
}
