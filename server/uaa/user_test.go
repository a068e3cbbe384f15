package uaa

import (
	"net/http"
	"strings"
	"testing"
)

// The errors are UAA's (ScimUserEndpoints.updateUser, ScimUtils.validate).
func TestUsersAreUpdated(t *testing.T) {
	_, srv := start(t)
	_, admin := grant(t, srv, "cf", "", password("admin", "pw"))
	_, joe := ask(t, srv, admin, "POST", "/Users", `{"userName":"joe","password":"x"}`)
	ask(t, srv, admin, "POST", "/Users", `{"userName":"ann","password":"x"}`)
	put := func(id, version, body string) (int, map[string]any) {
		t.Helper()
		req, err := http.NewRequest(http.MethodPut, srv.URL+"/Users/"+id, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "bearer "+admin["access_token"].(string))
		if version != "" {
			req.Header.Set("If-Match", version)
		}
		return do(t, req)
	}
	id := joe["id"].(string)
	const body = `{"userName":"joseph","name":{"givenName":"J","familyName":"D"},"emails":[{"value":"j@example.com"}]}`
	for _, c := range []struct {
		name, id, version, body string
		status                  int
		fault, text             string
	}{
		{"no version", id, "", body, 400, "scim", "Missing If-Match for PUT"},
		{"another version", id, "7", body, 409, "scim_resource_conflict", "Attempt to update a user (" + id + ") with wrong version: expected=0 but found=7"},
		{"no user", "none", "*", body, 404, "scim_resource_not_found", "User none does not exist"},
		{"no JSON", id, "*", `{`, 400, "invalid_scim_resource", "The user could not be read"},
		{"no name", id, "*", `{}`, 400, "invalid_scim_resource", "A username must be provided."},
		{"a name that is taken", id, "*", `{"userName":"ann"}`, 409, "scim_resource_already_exists", "Username already in use: ann"},
		{"the admin", userID(t, srv, admin), "*", body, 400, "invalid_scim_resource", "The user admin cannot be renamed: its password is the daemon's --admin-password"},
	} {
		status, got := put(c.id, c.version, c.body)
		if status != c.status || got["error"] != c.fault || got["error_description"] != c.text && got["message"] != c.text {
			t.Errorf("%s: got %d %v; want %d %s: %s", c.name, status, got, c.status, c.fault, c.text)
		}
	}
	for _, version := range []string{"*", "0", `"0"`} {
		status, got := put(id, version, body)
		if status != 200 || got["userName"] != "joseph" || got["name"].(map[string]any)["familyName"] != "D" || got["emails"].([]any)[0].(map[string]any)["value"] != "j@example.com" {
			t.Errorf("%s: got %d %v", version, status, got)
		}
	}
	if status, _ := grant(t, srv, "cf", "", password("joseph", "x")); status != 200 {
		t.Errorf("the renamed user gets %d; want a token for the old password", status)
	}
	if status, _ := grant(t, srv, "cf", "", password("joe", "x")); status == 200 {
		t.Error("the old name still logs in")
	}
	_, user := grant(t, srv, "cf", "", password("joseph", "x"))
	if status, _ := ask(t, srv, user, "PUT", "/Users/"+id, body); status != 403 {
		t.Errorf("a user without scim.write got %d", status)
	}
}
