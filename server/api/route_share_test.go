package api

import (
	"testing"

	"cupola/server/control"
	"cupola/server/control/apps"
	"cupola/store"
	"cupola/store/cf"
)

func TestRouteShares(t *testing.T) {
	w := newWorld(t)
	w.write(func(tx *store.Tx) error {
		far := &cf.App{Resource: guid("app-9"), Name: "far", SpaceGUID: "space-3", State: cf.Stopped}
		return control.OrElse(store.Spaces.Insert(tx, &cf.Space{Resource: guid("space-3"), Name: "next", OrgGUID: "org-1"}),
			control.OrElse(store.Apps.Insert(tx, far), store.Processes.Insert(tx, apps.NewProcess(far, "web"))))
	})
	const shares = "/v3/routes/route-1/relationships/shared_spaces"
	to := func(space string) string { return `{"data": [{"guid": "` + space + `"}]}` }
	const toFar = `{"destinations": [{"app": {"guid": "app-9"}}]}`
	w.run(t, []step{
		{as: "space_developer", method: "POST", path: shares, body: to("space-3"), status: 403, want: detail(330002, "Feature Disabled: route_sharing")},
		{method: "PATCH", path: "/v3/feature_flags/route_sharing", body: `{"enabled": true}`, status: 200},
		{method: "POST", path: "/v3/routes/route-1/destinations", body: toFar, status: 422, want: detail(10008, "Routes destinations must be in either the route's space or the route's shared spaces")},
		{as: "space_developer", method: "POST", path: shares, body: to("space-3"), status: 422,
			want: detail(10008, "Unable to share route hello.apps.test with spaces ['space-3']. Ensure the spaces exist and that you have access to them.")},
		{method: "POST", path: "/v3/roles", body: `{"type": "space_auditor", "relationships": {"user": {"data": {"guid": "user-space_developer"}}, "space": {"data": {"guid": "space-3"}}}}`, status: 201, save: "role"},
		{as: "space_developer", method: "POST", path: shares, body: to("space-3"), status: 422, want: detail(10008, "Unable to share route hello.apps.test with spaces ['space-3']. "+
			"Write permission is required in order to share a route with a space and the containing organization must not be suspended.")},
		{method: "POST", path: shares, body: to("space-1"), status: 422, want: detail(10008, "Unable to share route 'hello.apps.test' with space 'space-1'. Routes cannot be shared into the space where they were created.")},
		{method: "POST", path: shares, body: to("space-3"), status: 200, want: `{"data": [{"guid": "space-3"}], "links": {"self": {"href": "{url}` + shares + `"}}}`},
		{as: "space_auditor", method: "GET", path: shares, status: 200, want: `{"data": [{"guid": "space-3"}]}`},
		{method: "POST", path: "/v3/routes/route-1/destinations", body: toFar, status: 200},
		{method: "GET", path: "/v3/routes?space_guids=space-3", status: 200, want: `{"resources": [{"guid": "route-1", "relationships": {"space": {"data": {"guid": "space-1"}}, "shared_spaces": {"data": [{"guid": "space-3"}]}}}]}`},
		{method: "GET", path: "/v3/spaces/space-3/usage_summary", status: 200, want: `{"usage_summary": {"routes": 0}}`},
		{method: "DELETE", path: shares + "/space-1", status: 422, want: detail(10008, "Unable to unshare route 'hello.apps.test' from space 'space-1'. Routes cannot be removed from the space that owns them.")},
		{method: "DELETE", path: shares + "/none", status: 422, want: detail(10008, "Unable to unshare route 'hello.apps.test' from space 'none'. Ensure the space exists and that you have access to it.")},
		{as: "space_developer", method: "DELETE", path: shares + "/space-3", status: 422, want: detail(10008, "Unable to unshare route 'hello.apps.test' from space 'space-3'. You don't have write permission for the target space.")},
		{method: "DELETE", path: shares + "/space-3", status: 204},
		{method: "GET", path: shares, status: 200, want: `{"data": []}`},

		{method: "PATCH", path: "/v3/routes/route-1/relationships/space", body: `{"data": {"guid": "none"}}`, status: 422,
			want: detail(10008, "Unable to transfer owner of route 'hello.apps.test' to space 'none'. Ensure the space exists and that you have access to it.")},
		{method: "PATCH", path: "/v3/routes/route-1/relationships/space", body: `{"data": {"guid": "space-3"}}`, status: 200, want: `{"status": "ok"}`},
		{method: "GET", path: "/v3/routes/route-1", status: 200, want: `{"relationships": {"space": {"data": {"guid": "space-3"}}, "shared_spaces": {"data": [{"guid": "space-1"}]}}}`},
		{method: "DELETE", path: "/v3/spaces/space-1", status: 202},
		{method: "GET", path: "/v3/routes/route-1", status: 200, want: `{"relationships": {"space": {"data": {"guid": "space-3"}}, "shared_spaces": {"data": []}}}`},
		{method: "GET", path: "/v3/audit_events?types=audit.route.share,audit.route.unshare,audit.route.transfer-owner", status: 200, want: `{"resources": [
			{"type": "audit.route.share", "space": {"guid": "space-1"}, "data": {"target_space_guids": ["space-3"]}}, {"type": "audit.route.unshare", "data": {"target_space_guid": "space-3"}},
			{"type": "audit.route.transfer-owner", "space": {"guid": "space-1"}, "data": {"target_space_guid": "space-3"}}]}`},
	})
}
