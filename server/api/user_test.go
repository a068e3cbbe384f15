package api

import "testing"

func TestUsers(t *testing.T) {
	w := newWorld(t)
	w.run(t, []step{
		{method: "POST", path: "/v3/users", body: `{"guid": "a-client", "metadata": {"labels": {"a": "b"}}}`, status: 201,
			want: `{"guid": "a-client", "username": null, "presentation_name": "a-client", "origin": null, "metadata": {"labels": {"a": "b"}}}`},
		{method: "POST", path: "/v3/users", body: `{}`, status: 422, want: detail(10008, "Guid or 'username' and 'origin' must be provided")},
		{method: "POST", path: "/v3/users", body: `{"username": "x"}`, status: 422, want: detail(10008, "Username can only be provided together with 'origin'")},
		{method: "POST", path: "/v3/users", body: `{"username": "x", "origin": "uaa"}`, status: 422, want: detail(10008, "Origin cannot be 'uaa' when creating a user by username")},
		{as: "org_manager", method: "POST", path: "/v3/users", body: `{"guid": "b"}`, status: 403},
		{method: "GET", path: "/v3/users?usernames=org_manager", status: 200, want: `{"resources": [{"guid": "user-org_manager", "origin": "uaa"}]}`},
		{method: "GET", path: "/v3/users?partial_usernames=manager&origins=uaa", status: 200, want: `{"pagination": {"total_results": 3}}`},
		{method: "GET", path: "/v3/users?origins=uaa", status: 422, want: detail(10008, "Origins filter cannot be provided without usernames or partial_usernames filter.")},
		{as: "nobody", method: "GET", path: "/v3/users", status: 200, want: `{"resources": [{"guid": "user-nobody"}]}`},
		{as: "org_user", method: "GET", path: "/v3/users", status: 200, want: `{"pagination": {"total_results": 8}}`},
		{as: "nobody", method: "GET", path: "/v3/users/user-admin", status: 404, want: detail(10010, "User not found")},
		{method: "PATCH", path: "/v3/users/user-nobody", body: `{"metadata": {"annotations": {"note": "x"}}}`, status: 200, want: `{"metadata": {"annotations": {"note": "x"}}}`},
		{method: "GET", path: "/v3/organizations/org-1/users", status: 200, want: `{"pagination": {"total_results": 8}}`},
		{method: "GET", path: "/v3/spaces/space-1/users?usernames=space_auditor", status: 200, want: `{"resources": [{"username": "space_auditor"}]}`},
		{method: "DELETE", path: "/v3/users/user-space_auditor", status: 202},
		{method: "GET", path: "/v3/roles?user_guids=user-space_auditor", status: 200, want: `{"pagination": {"total_results": 0}}`},
		{method: "DELETE", path: "/v3/users/a-client", status: 202},
		{method: "GET", path: "/v3/users/a-client", status: 404},
	})
}

func TestUsersMakeOrgsWhenTheyMay(t *testing.T) {
	w := newWorld(t)
	w.run(t, []step{
		{as: "nobody", method: "POST", path: "/v3/organizations", body: `{"name": "mine"}`, status: 403},
		{method: "PATCH", path: "/v3/feature_flags/user_org_creation", body: `{"enabled": true}`, status: 200, want: `{"name": "user_org_creation", "enabled": true}`},
		{as: "nobody", method: "POST", path: "/v3/organizations", body: `{"name": "mine"}`, status: 201, save: "org"},
		{as: "nobody", method: "GET", path: "/v3/roles?order_by=created_at&organization_guids={org}", status: 200,
			want: `{"resources": [{"type": "organization_user"}, {"type": "organization_manager"}]}`},
		{as: "nobody", method: "POST", path: "/v3/spaces", body: `{"name": "s", "relationships": {"organization": {"data": {"guid": "{org}"}}}}`, status: 201},
	})
}
