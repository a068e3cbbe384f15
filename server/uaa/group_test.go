package uaa

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// scopesOf are the scopes of a token that a user gets through a client.
func scopesOf(t *testing.T, u *UAA, srv *httptest.Server, client, secret, user string) []string {
	t.Helper()
	_, tokens := grant(t, srv, client, secret, password(user, "x"))
	access, ok := tokens["access_token"].(string)
	if !ok {
		t.Fatalf("%s through %s: got %v", user, client, tokens)
	}
	id, err := u.Verify(t.Context(), access)
	if err != nil {
		t.Fatal(err)
	}
	return id.Scopes
}

// A group that an admin made is a scope in its members' tokens, through clients that
// have it among theirs (UAA: ScimGroupEndpoints, JdbcScimGroupProvisioning).
func TestMadeGroups(t *testing.T) {
	u, srv := start(t)
	_, admin := grant(t, srv, "cf", "", password("admin", "pw"))
	_, joe := ask(t, srv, admin, "POST", "/Users", `{"userName":"joe","password":"x"}`)
	ask(t, srv, admin, "POST", "/oauth/clients", `{"client_id":"shop","client_secret":"s","authorized_grant_types":["password"],"scope":["shop.read","shop.write","openid"]}`)
	status, g := ask(t, srv, admin, "POST", "/Groups", fmt.Sprintf(`{"displayName":"shop.read","description":"readers","members":[{"value":%q,"type":"USER"}]}`, joe["id"]))
	if status != 201 || g["displayName"] != "shop.read" || g["description"] != "readers" || g["zoneId"] != "uaa" || len(g["members"].([]any)) != 1 {
		t.Fatalf("got %d %v", status, g)
	}
	path := "/Groups/" + g["id"].(string)
	if got := scopesOf(t, u, srv, "shop", "s", "joe"); !slices.Contains(got, "shop.read") {
		t.Errorf("got the scopes %q", got)
	}
	if got := scopesOf(t, u, srv, "cf", "", "joe"); slices.Contains(got, "shop.read") {
		t.Errorf("got the scopes %q through cf, which does not have shop.read", got)
	}
	if _, got := ask(t, srv, admin, "GET", "/Users/"+joe["id"].(string), ""); !strings.Contains(fmt.Sprint(got["groups"]), fmt.Sprintf("display:shop.read type:DIRECT value:%s", g["id"])) {
		t.Errorf("got the groups %v", got["groups"])
	}
	if status, got := ask(t, srv, admin, "GET", path+"/members/"+joe["id"].(string), ""); status != 200 || got["value"] != joe["id"] {
		t.Errorf("got %d %v", status, got)
	}
	_, old := grant(t, srv, "shop", "s", password("joe", "x"))
	if status, got := put(t, srv, admin, path, `"0"`, fmt.Sprintf(`{"displayName":"shop.write","members":[{"value":%q}]}`, joe["id"])); status != 200 || got["displayName"] != "shop.write" || got["meta"].(map[string]any)["version"] != 1.0 {
		t.Errorf("got %d %v", status, got)
	}
	if got := scopesOf(t, u, srv, "shop", "s", "joe"); !slices.Contains(got, "shop.write") || slices.Contains(got, "shop.read") {
		t.Errorf("got the scopes %q", got)
	}
	if _, err := u.Verify(t.Context(), old["access_token"].(string)); err == nil {
		t.Error("a token with a scope that was taken away gives access")
	}
	if status, got := ask(t, srv, admin, "DELETE", path, ""); status != 200 || got["displayName"] != "shop.write" {
		t.Errorf("got %d %v", status, got)
	}
	if got := scopesOf(t, u, srv, "shop", "s", "joe"); slices.Contains(got, "shop.write") {
		t.Errorf("got the scopes %q", got)
	}
	if status, _ := ask(t, srv, admin, "GET", path, ""); status != 404 {
		t.Errorf("got %d for a deleted group", status)
	}
}

func put(t *testing.T, srv *httptest.Server, tokens map[string]any, path, match, body string) (int, map[string]any) {
	t.Helper()
	return scimChange(t, srv, tokens, "PUT", path, match, body)
}

func TestRefusedGroups(t *testing.T) {
	_, srv := start(t)
	_, admin := grant(t, srv, "cf", "", password("admin", "pw"))
	_, joe := ask(t, srv, admin, "POST", "/Users", `{"userName":"joe","password":"x"}`)
	_, tokens := grant(t, srv, "cf", "", password("joe", "x"))
	_, g := ask(t, srv, admin, "POST", "/Groups", `{"displayName":"a.b"}`)
	path, id := "/Groups/"+g["id"].(string), joe["id"].(string)
	ask(t, srv, admin, "POST", path+"/members", fmt.Sprintf(`{"value":%q}`, id))
	fixed := "/Groups/" + groupID("cloud_controller.admin")
	for _, tt := range []struct {
		method, path, body string
		status             int
		code, description  string
	}{
		{"POST", "/Groups", `{"displayName":"a.b"}`, 409, "scim_resource_already_exists", "A group with displayName: a.b already exists."},
		{"POST", "/Groups", `{"displayName":"cloud_controller.admin"}`, 409, "scim_resource_already_exists", "A group with displayName: cloud_controller.admin already exists."},
		{"POST", "/Groups", `{"displayName":"x","members":[{"value":"nobody"}]}`, 400, "invalid_scim_resource", "Invalid group member: nobody"},
		{"POST", path + "/members", fmt.Sprintf(`{"value":%q}`, id), 409, "member_already_exists", id + " is already part of the group: " + g["id"].(string)},
		{"POST", "/Groups/" + groupID("openid") + "/members", fmt.Sprintf(`{"value":%q}`, id), 409, "member_already_exists", "Trying to add member to default group"},
		{"GET", "/Groups/none", "", 404, "scim_resource_not_found", "Group none does not exist"},
		{"GET", path + "/members/none", "", 404, "member_not_found", "Member none does not exist in group " + g["id"].(string)},
		{"DELETE", fixed, "", 400, "scim", "The group cloud_controller.admin cannot be deleted: Cloud Foundry needs it"},
		{"PUT", path, `{"displayName":"c"}`, 400, "scim", "Missing If-Match for PUT"},
	} {
		status, got := ask(t, srv, admin, tt.method, tt.path, tt.body)
		if status != tt.status || got["error"] != tt.code || got["error_description"] != tt.description || got["message"] != tt.description {
			t.Errorf("%s %s %s: got %d %v; want %d %s", tt.method, tt.path, tt.body, status, got, tt.status, tt.description)
		}
	}
	if status, got := put(t, srv, admin, path, "7", `{"displayName":"a.b"}`); status != 409 {
		t.Errorf("another version: got %d %v", status, got)
	}
	if status, _ := ask(t, srv, admin, "GET", "/Groups?filter="+url.QueryEscape(`displayName eq "x"`), ""); status != 200 {
		t.Errorf("got %d", status)
	}
	for _, c := range []struct{ method, path string }{{"POST", "/Groups"}, {"PUT", path}, {"DELETE", path}, {"GET", path}} {
		if status, got := ask(t, srv, tokens, c.method, c.path, `{"displayName":"mine"}`); status != 403 || got["error"] != "insufficient_scope" {
			t.Errorf("%s %s: got %d %v; want 403", c.method, c.path, status, got)
		}
	}
}

// The origin of a login_hint must be one that passwords are of (UAA:
// PasswordGrantAuthenticationManager); a hint in another form is none (UaaLoginHint).
func TestLoginHint(t *testing.T) {
	_, srv := start(t)
	const refused = "The origin provided in the login_hint does not match an active Identity Provider, that supports password grant."
	for hint, want := range map[string]string{
		`{"origin":"uaa"}`:             "",
		`%7B%22origin%22%3A%22uaa%22}`: "",
		"example.com":                  "",
		`{"other":"ldap"}`:             "",
		`{"origin":"ldap"}`:            refused,
		`%7B"origin"%3A"okta"%7D`:      refused,
		`{"origin":null}`:              refused,
		`{}`:                           refused,
	} {
		form := password("admin", "pw")
		form.Set("login_hint", hint)
		status, got := grant(t, srv, "cf", "", form)
		req, _ := http.NewRequest("POST", srv.URL+"/oauth/token?"+url.Values{"login_hint": {hint}}.Encode(), strings.NewReader(password("admin", "pw").Encode()))
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.SetBasicAuth("cf", "")
		if inQuery, _ := do(t, req); inQuery != status { // where the CLI has it
			t.Errorf("%s: got %d in the query, %d in the form", hint, inQuery, status)
		}
		if want == "" && status != 200 || want != "" && (status != 401 || got["error"] != "unauthorized" || got["error_description"] != want) {
			t.Errorf("%s: got %d %v; want %q", hint, status, got["error_description"], want)
		}
	}
}

// The names of users (UAA: ScimUtils.validate).
func TestUserNames(t *testing.T) {
	_, srv := start(t)
	_, admin := grant(t, srv, "cf", "", password("admin", "pw"))
	const pattern = `Username must match pattern: [\p{L}+0-9+\-_.@'!]+`
	for body, want := range map[string]string{
		`{"userName":"o'neil+x_1-2@example.com!"}`: "",
		`{"userName":"Jürgen"}`:                    "",
		`{"userName":"two words"}`:                 pattern,
		`{"userName":"a/b"}`:                       pattern,
		`{"userName":"a\n"}`:                       pattern,
		`{"userName":"<b>"}`:                       pattern,
		`{"userName":" "}`:                         "A username must be provided.",
		`{}`:                                       "A username must be provided.",
		`{"userName":"a","origin":"ldap"}`:         "Invalid origin ldap in Identity Zone uaa",
		`{"userName":"b","emails":[{"value":"x"},{"value":"y"}]}`: "Exactly one email must be provided.",
		`{"userName":"c","emails":[{"value":""}]}`:                "An email must be provided.",
		`{"userName":"` + strings.Repeat("x", 256) + `"}`:         "Username has more than 255 bytes.",
	} {
		status, got := ask(t, srv, admin, "POST", "/Users", strings.Replace(body, "{", `{"password":"x",`, 1))
		if strings.HasPrefix(body, "{}") {
			status, got = ask(t, srv, admin, "POST", "/Users", body)
		}
		if want == "" && status != 201 || want != "" && (status != 400 || got["error"] != "invalid_scim_resource" || got["error_description"] != want) {
			t.Errorf("%s: got %d %v; want %q", body, status, got, want)
		}
	}
}
