package api

import (
	"fmt"
	"testing"
)

func orgRole(t, user string) string {
	return fmt.Sprintf(`{"type": %q, "relationships": {"organization": {"data": {"guid": "org-1"}}, "user": {"data": %s}}}`, t, user)
}

func spaceRole(t, user string) string {
	return fmt.Sprintf(`{"type": %q, "relationships": {"space": {"data": {"guid": "space-1"}}, "user": {"data": %s}}}`, t, user)
}

func TestRoles(t *testing.T) {
	w := newWorld(t)
	nobody := `{"username": "nobody", "origin": "uaa"}`
	w.run(t, []step{
		{method: "POST", path: "/v3/roles", body: spaceRole("space_developer", nobody), status: 422,
			want: detail(10008, "Users cannot be assigned roles in a space if they do not have a role in that space's organization.")},
		{as: "org_manager", method: "POST", path: "/v3/roles", body: orgRole("organization_user", nobody), status: 201, save: "member",
			want: `{"type": "organization_user", "relationships": {"user": {"data": {"guid": "user-nobody"}}, "organization": {"data": {"guid": "org-1"}}, "space": {"data": null}},
				"links": {"self": {}, "user": {"href": "{url}/v3/users/user-nobody"}, "organization": {"href": "{url}/v3/organizations/org-1"}}}`},
		{method: "POST", path: "/v3/roles", body: orgRole("organization_user", nobody), status: 422,
			want: detail(10008, "User 'nobody' already has 'organization_user' role in organization 'org'.")},
		{as: "space_manager", method: "POST", path: "/v3/roles", body: spaceRole("space_developer", `{"guid": "user-nobody"}`), status: 201, save: "dev"},
		{as: "space_manager", method: "POST", path: "/v3/roles", body: spaceRole("space_developer", nobody), status: 422,
			want: detail(10008, "User 'nobody' already has 'space_developer' role in space 'dev'.")},
		{as: "space_developer", method: "POST", path: "/v3/roles", body: spaceRole("space_auditor", nobody), status: 403, want: detail(10003, "You are not authorized to perform the requested action")},
		{method: "DELETE", path: "/v3/roles/{member}", status: 422, want: detail(10008, "Cannot delete organization_user role while user has roles in spaces in that organization.")},
		{method: "GET", path: "/v3/roles?include=user,space&user_guids=user-nobody&types=space_developer", status: 200,
			want: `{"pagination": {"total_results": 1}, "resources": [{"type": "space_developer"}], "included": {"users": [{"username": "nobody", "presentation_name": "nobody", "origin": "uaa"}], "spaces": [{"name": "dev"}]}}`},
		{method: "GET", path: "/v3/roles/{dev}?include=user", status: 200, want: `{"included": {"users": [{"guid": "user-nobody"}]}}`},
		{method: "GET", path: "/v3/roles/{dev}?include=app", status: 422},
		{as: "org_manager", method: "DELETE", path: "/v3/roles/{dev}", status: 202, save: "job"},
		{method: "GET", path: "/v3/jobs/{job}", status: 200, want: `{"operation": "role.delete", "state": "COMPLETE"}`},
		{as: "org_manager", method: "DELETE", path: "/v3/roles/{member}", status: 202},
		{method: "DELETE", path: "/v3/roles/{member}", status: 404, want: detail(10010, "Role not found")},
	})
}

func TestRolesThatCannotBe(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct {
		body, want string
	}{
		{`{"type": "king", "relationships": {"organization": {"data": {"guid": "org-1"}}, "user": {"data": {"guid": "x"}}}}`,
			`Type must be one of the allowed types ["organization_auditor", "organization_manager", "organization_billing_manager", "organization_user", "space_auditor", "space_manager", "space_developer", "space_supporter"]`},
		{orgRole("organization_user", `{"guid": "a", "username": "b"}`), "Relationships Username cannot be specified when identifying user by guid"},
		{orgRole("organization_user", `{"origin": "uaa"}`), "Relationships User origin cannot be specified without specifying the username, Relationships User must have a username or guid specified"},
		{orgRole("space_auditor", `{"guid": "a"}`), "Relationships Organization cannot be provided with the space role type: 'space_auditor'."},
		{spaceRole("organization_user", `{"guid": "a"}`), "Relationships Space cannot be provided with the organization role type: 'organization_user'."},
		{`{"type": "organization_user", "relationships": {"user": {"data": {"guid": "a"}}}}`, "Relationships must specify either a space or an organization."},
		{orgRole("organization_user", `{"username": "who"}`), "No user exists with the username 'who'."},
		{orgRole("organization_user", `{"username": "who", "origin": "uaa"}`), "No user exists with the username 'who' and origin 'uaa'."},
		{`{"type": "organization_user", "relationships": {"organization": {"data": {"guid": "x"}}, "user": {"data": {"guid": "a"}}}}`, "Invalid organization. Ensure that the organization exists and you have access to it."},
		{`{"type": "space_auditor", "relationships": {"space": {"data": {"guid": "x"}}, "user": {"data": {"guid": "a"}}}}`, "Invalid space. Ensure that the space exists and you have access to it."},
	} {
		w.run(t, []step{{method: "POST", path: "/v3/roles", body: c.body, status: 422, want: detail(10008, c.want)}})
	}
}

func TestUsersOfTwoOriginsAreTold(t *testing.T) {
	w := newWorld(t)
	w.run(t, []step{
		{method: "POST", path: "/v3/users", body: `{"username": "nobody", "origin": "ldap"}`, status: 201, want: `{"username": "nobody", "origin": "ldap"}`},
		{method: "POST", path: "/v3/roles", body: orgRole("organization_user", `{"username": "nobody"}`), status: 422,
			want: detail(10008, "Ambiguous user. User with username 'nobody' exists in the following origins: ldap, uaa. Specify an origin to disambiguate.")},
		{method: "POST", path: "/v3/roles", body: orgRole("organization_user", `{"username": "nobody", "origin": "ldap"}`), status: 201},
	})
}
