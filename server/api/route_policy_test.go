package api

import (
	"testing"

	"cupola/server/control"
	"cupola/store"
	"cupola/store/cf"
)

// seedPolicies adds a domain that enforces policies, with a route and a policy.
func seedPolicies(tx *store.Tx) error {
	return control.OrElse(store.Domains.Insert(tx, &cf.Domain{Resource: guid("domain-11"), Name: "apps.identity", EnforcesPolicies: true, PoliciesScope: "space"}),
		control.OrElse(store.Routes.Insert(tx, &cf.Route{Resource: guid("route-11"), SpaceGUID: "space-1", DomainGUID: "domain-11", Host: "back"}),
			store.RoutePolicies.Insert(tx, &cf.RoutePolicy{Resource: guid("policy-1"), RouteGUID: "route-11", Source: "cf:app:d76446a1-f429-4444-8797-be2f78b75b08"})))
}

func TestPolicyDomains(t *testing.T) {
	w := newWorld(t)
	domain := func(more string) string { return `{"name": "apps.identity"` + more + `}` }
	refuse := func(more, text string) step {
		return step{method: "POST", path: "/v3/domains", body: domain(more), status: 422, want: detail(10008, text)}
	}
	w.run(t, []step{
		refuse(`, "route_policies_scope": "galaxy"`, "Route policies scope must be one of 'any', 'org', 'space'"),
		refuse(`, "enforce_route_policies": true`, "Route policies scope is required when enforce_route_policies is true"),
		refuse(`, "enforce_route_policies": true, "route_policies_scope": "any", "internal": true`, "Internal domains cannot have route policy enforcement. Internal routes bypass GoRouter."),
		refuse(`, "enforce_route_policies": true, "route_policies_scope": "any", "router_group": {"guid": "`+cf.DefaultTCPGUID+`"}`,
			"Domains with a router group cannot have route policy enforcement. TCP routes do not support mTLS policy enforcement."),
		{method: "POST", path: "/v3/domains", body: domain(`, "enforce_route_policies": true, "route_policies_scope": "org"`), status: 201,
			want: `{"enforce_route_policies": true, "route_policies_scope": "org", "internal": false}`},
	})
}

func TestRoutePolicies(t *testing.T) {
	w := newWorld(t)
	w.write(seedPolicies)
	const list, one, app = "/v3/route_policies", "/v3/route_policies/policy-1", "cf:app:d76446a1-f429-4444-8797-be2f78b75b08"
	policy := func(route, source string) string {
		return `{"source": "` + source + `", "relationships": {"route": {"data": {"guid": "` + route + `"}}}}`
	}
	refuse := func(route, source, text string) step {
		return step{method: "POST", path: list, body: policy(route, source), status: 422, want: detail(10008, text)}
	}
	w.run(t, []step{
		refuse("route-11", "cf:app:x", "Source must be in format 'cf:app:<uuid>', 'cf:space:<uuid>', 'cf:org:<uuid>', or 'cf:any'"),
		refuse("route-1", "cf:any", "Cannot create route policies for route 'route-1': the route's domain does not have enforce_route_policies enabled."),
		refuse("route-11", app, "A route policy with source '"+app+"' already exists for this route."),
		refuse("route-11", "cf:any", "source 'cf:any' cannot coexist with other route policies on the same route"),
		refuse("route-11", "cf:org:d76446a1-f429-4444-8797-be2f78b75b08", "Source 'cf:org:d76446a1-f429-4444-8797-be2f78b75b08' is not allowed: domain's route_policies_scope is 'space'."),
		{method: "POST", path: list, body: policy("none", "cf:any"), status: 404, want: detail(10010, "Route not found")},
		{as: "space_auditor", method: "GET", path: one, status: 200, want: `{"source": "` + app + `", "relationships": {"route": {"data": {"guid": "route-11"}},
			"app": {"data": {"guid": "d76446a1-f429-4444-8797-be2f78b75b08"}}, "space": {"data": null}, "organization": {"data": null}},
			"links": {"self": {"href": "{url}` + one + `"}, "app": {"href": "{url}/v3/apps/d76446a1-f429-4444-8797-be2f78b75b08"}}}`},
		{as: "space_developer", method: "PATCH", path: one, body: `{"metadata": {"labels": {"team": "pay"}}}`, status: 200, want: `{"metadata": {"labels": {"team": "pay"}}}`},
		{as: "space_developer", method: "POST", path: list, body: policy("route-11", "cf:space:d76446a1-f429-4444-8797-be2f78b75b08"), status: 201, save: "p"},
		{method: "GET", path: list + "?sources=x", status: 400, want: detail(10005, "The query parameter is invalid: Sources contains invalid source format: x")},
		{method: "GET", path: list + "?source_guids=d76446a1-f429-4444-8797-be2f78b75b08&space_guids=space-1", status: 200, want: `{"pagination": {"total_results": 2}}`},
		{method: "GET", path: list + "?label_selector=team=pay&sources=" + app + "&route_guids=route-11&include=route,source", status: 200,
			want: `{"resources": [{"guid": "policy-1"}], "included": {"routes": [{"guid": "route-11"}], "apps": [], "spaces": [], "organizations": []}}`},
		{method: "GET", path: "/v3/routes/route-11?include=route_policies", status: 200, want: `{"included": {"route_policies": [{"guid": "policy-1"}, {"guid": "{p}"}]}}`},
		{as: "nobody", method: "GET", path: list, status: 200, want: `{"pagination": {"total_results": 0}}`},
		{as: "space_developer", method: "DELETE", path: one, status: 204},
		{method: "DELETE", path: "/v3/routes/route-11", status: 202},
		{method: "GET", path: list, status: 200, want: `{"pagination": {"total_results": 0}}`},
		{method: "GET", path: "/v3/audit_events?types=audit.route_policy.create,audit.route_policy.update,audit.route_policy.delete", status: 200, want: `{"pagination": {"total_results": 3}}`},
	})
}
