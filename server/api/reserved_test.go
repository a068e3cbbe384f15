package api

import (
	"fmt"
	"testing"

	"cupola/store"
	"cupola/store/cf"
)

// seedStranger makes a user who has an org and a space to himself.
func seedStranger(tx *store.Tx) error {
	for _, r := range []*cf.Role{{Type: cf.OrgUser}, {Type: cf.OrgManager}, {Type: cf.SpaceDeveloper, SpaceGUID: "space-2"}} {
		r.UserGUID, r.OrgGUID = "user-nobody", "org-2"
		if err := store.Roles.Insert(tx, r); err != nil {
			return err
		}
	}
	return nil
}

func newRoute(space, domain, host, path string) string {
	return fmt.Sprintf(`{"host": %q, "path": %q, "relationships": {"space": {"data": {"guid": %q}}, "domain": {"data": {"guid": %q}}}}`, host, path, space, domain)
}

func newDomain(name, org string) string {
	return fmt.Sprintf(`{"name": %q, "relationships": {"organization": {"data": {"guid": %q}}}}`, name, org)
}

// Nobody gets requests for another's app by a route or domain of his own.
func TestNamesOfOthersAreReserved(t *testing.T) {
	w := newWorld(t)
	w.write(seedStranger)
	reserved := func(name, by string) string {
		return detail(10008, fmt.Sprintf(`The domain name "%s" cannot be created because "%s" is already reserved by %s`, name, name, by))
	}
	w.run(t, []step{
		{as: "nobody", method: "POST", path: "/v3/routes", body: newRoute("space-2", "domain-1", "hello", "/admin"), status: 422, want: detail(10008, "Routes for this host and domain have been reserved for another space.")},
		{as: "nobody", method: "POST", path: "/v3/routes", body: newRoute("space-2", "domain-1", "HELLO", ""), status: 422, want: detail(10008, "Route already exists with host 'HELLO' for domain 'apps.test'.")},
		{as: "space_developer", method: "POST", path: "/v3/routes", body: newRoute("space-1", "domain-1", "hello", "/admin"), status: 201},
		{as: "nobody", method: "POST", path: "/v3/routes", body: newRoute("space-2", "domain-1", "api", ""), status: 422, want: detail(10008, "Route conflicts with a reserved system route.")},
		{as: "nobody", method: "POST", path: "/v3/domains", body: newDomain("hello.apps.test", "org-2"), status: 422, want: reserved("hello.apps.test", "a route")},
		{as: "nobody", method: "POST", path: "/v3/domains", body: newDomain("api.apps.test", "org-2"), status: 422, want: reserved("api.apps.test", "the system")},
		{as: "admin", method: "POST", path: "/v3/domains", body: `{"name": "services.internal", "internal": true}`, status: 422, want: reserved("services.internal", "the built-in services")},
		{as: "admin", method: "POST", path: "/v3/domains", body: `{"name": "a.Services.internal", "internal": true}`, status: 422,
			want: detail(10008, `The domain name "a.services.internal" cannot be created because "services.internal" is already reserved by the built-in services`)},
		{as: "nobody", method: "POST", path: "/v3/domains", body: newDomain("apps.test", "org-2"), status: 422, want: detail(10008, `The domain name "apps.test" is already in use`)},
		{as: "nobody", method: "POST", path: "/v3/domains", body: newDomain("b.test", "org-2"), status: 201, save: "b"},
		{as: "org_manager", method: "POST", path: "/v3/domains", body: newDomain("a.b.test", "org-1"), status: 422,
			want: detail(10008, `The domain name "a.b.test" cannot be created because "b.test" is already reserved by another domain`)},
		{as: "org_manager", method: "POST", path: "/v3/domains", body: newDomain("x.y.test", "org-1"), status: 201},
		{as: "nobody", method: "POST", path: "/v3/domains", body: newDomain("y.test", "org-2"), status: 422,
			want: detail(10008, `The domain name "y.test" cannot be created because "x.y.test" is already reserved by another domain`)},
		{as: "nobody", method: "POST", path: "/v3/domains", body: newDomain("free.apps.test", "org-2"), status: 201},
		{as: "space_developer", method: "POST", path: "/v3/routes", body: newRoute("space-1", "domain-1", "free", ""), status: 422, want: detail(10008, "Route conflicts with domain 'free.apps.test'.")},
	})
}

// The system's hosts are for no tenant, nor for an admin: neither as routes, with
// a path or without, nor as domains.
func TestSystemHostsAreReserved(t *testing.T) {
	w := newWorld(t)
	w.write(seedStranger)
	// A row from before the name was reserved.
	w.write(func(tx *store.Tx) error {
		return store.Domains.Insert(tx, &cf.Domain{Resource: guid("old"), Name: "console.apps.test", OrgGUID: "org-2"})
	})
	route := detail(10008, "Route conflicts with a reserved system route.")
	domain := func(name string) string {
		return detail(10008, fmt.Sprintf(`The domain name "%s" cannot be created because "%s" is already reserved by the system`, name, name))
	}
	var steps []step
	for _, host := range []string{"api", "login", "UAA", "log-cache", "log-stream", "doppler", "loggregator", "ssh", "console", "credhub", "scheduler"} {
		steps = append(steps,
			step{as: "nobody", method: "POST", path: "/v3/routes", body: newRoute("space-2", "domain-1", host, ""), status: 422, want: route},
			step{as: "nobody", method: "POST", path: "/v3/routes", body: newRoute("space-2", "domain-1", host, "/oauth"), status: 422, want: route},
			step{method: "POST", path: "/v3/routes", body: newRoute("space-2", "domain-1", host, ""), status: 422, want: route})
	}
	steps = append(steps,
		step{as: "nobody", method: "POST", path: "/v3/domains", body: newDomain("uaa.apps.test", "org-2"), status: 422, want: domain("uaa.apps.test")},
		step{as: "nobody", method: "POST", path: "/v3/domains", body: newDomain("zone.login.apps.test", "org-2"), status: 422, want: domain("zone.login.apps.test")},
		step{method: "POST", path: "/v3/domains", body: `{"name": "Doppler.apps.test"}`, status: 422, want: domain("doppler.apps.test")},
		step{as: "nobody", method: "POST", path: "/v3/routes", body: newRoute("space-2", "old", "", ""), status: 422, want: route},
		step{as: "nobody", method: "POST", path: "/v3/routes", body: newRoute("space-2", "old", "*", ""), status: 422, want: route},
		step{as: "nobody", method: "POST", path: "/v3/domains", body: newDomain("uaa.mine.test", "org-2"), status: 201, save: "mine"},
		step{as: "nobody", method: "POST", path: "/v3/routes", body: newRoute("space-2", "{mine}", "login", ""), status: 201},
		step{as: "nobody", method: "POST", path: "/v3/routes", body: newRoute("space-2", "domain-1", "uaa-of-mine", ""), status: 201})
	w.run(t, steps)
}

func TestDomainsAreSharedByThoseWhoMayInBothOrgs(t *testing.T) {
	w := newWorld(t)
	w.write(seedStranger)
	shared := `{"name": "s.test", "relationships": {"organization": {"data": {"guid": "org-1"}}, "shared_organizations": {"data": [{"guid": "org-2"}]}}}`
	w.run(t, []step{
		{as: "org_manager", method: "POST", path: "/v3/domains", body: shared, status: 422, want: detail(10008, "Organization with guid 'org-2' does not exist, or you do not have access to it.")},
		{method: "POST", path: "/v3/domains", body: shared, status: 201, save: "s"},
		{method: "GET", path: "/v3/domains/{s}", status: 200, want: `{"relationships": {"shared_organizations": {"data": [{"guid": "org-2"}]}}}`},
		{as: "nobody", method: "GET", path: "/v3/domains/{s}", status: 200, want: `{"relationships": {"shared_organizations": {"data": [{"guid": "org-2"}]}}}`},
		{as: "org_manager", method: "GET", path: "/v3/domains?names=s.test", status: 200, want: `{"resources": [{"relationships": {"shared_organizations": {"data": []}}}]}`},
		{method: "DELETE", path: "/v3/domains/{s}", status: 422, want: detail(10008, "This domain is shared with other organizations. Unshare before deleting.")},
		{as: "nobody", method: "POST", path: "/v3/routes", body: newRoute("space-2", "{s}", "a", ""), status: 201, save: "r"},
		{method: "DELETE", path: "/v3/domains/{s}/relationships/shared_organizations/org-2", status: 422, want: detail(10008, "This domain has associated routes in this organization. Delete the routes before unsharing.")},
		{as: "nobody", method: "DELETE", path: "/v3/routes/{r}", status: 202},
		{as: "nobody", method: "DELETE", path: "/v3/domains/{s}/relationships/shared_organizations/org-2", status: 204},
		{as: "org_manager", method: "DELETE", path: "/v3/domains/{s}", status: 202},
	})
}

// Only an admin suspends an org; then only an admin changes what is in it.
func TestSuspendedOrgs(t *testing.T) {
	w := newWorld(t)
	suspended := detail(10017, "The organization is suspended")
	w.run(t, []step{
		{as: "org_manager", method: "PATCH", path: "/v3/organizations/org-1", body: `{"suspended": true}`, status: 403, want: detail(10003, "You are not authorized to perform the requested action")},
		{method: "PATCH", path: "/v3/organizations/org-1", body: `{"suspended": true}`, status: 200},
		{as: "org_manager", method: "PATCH", path: "/v3/organizations/org-1", body: `{"suspended": false}`, status: 403, want: suspended},
		{as: "space_developer", method: "POST", path: "/v3/apps/app-1/actions/start", status: 403, want: suspended},
		{as: "space_developer", method: "GET", path: "/v3/apps/app-1", status: 200},
		{method: "POST", path: "/v3/apps/app-1/actions/start", status: 200},
	})
}
