package uaa

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

// scimChange asks for a change of a group of the version that match has.
func scimChange(t *testing.T, srv *httptest.Server, tokens map[string]any, method, path, match, body string) (int, map[string]any) {
	t.Helper()
	req, err := http.NewRequest(method, srv.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "bearer "+tokens["access_token"].(string))
	if match != "" {
		req.Header.Set("If-Match", match)
	}
	return do(t, req)
}

// memberList writes the members of a group as "TYPE value", sorted.
func memberList(group map[string]any) string {
	var all []string
	for _, m := range group["members"].([]any) {
		one := m.(map[string]any)
		all = append(all, fmt.Sprintf("%v %v", one["type"], one["value"]))
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// The members of a group that is a member of another have the scopes of both (UAA:
// JdbcUaaUserDatabase.getAuthorities, ScimUserEndpoints.syncGroups). Groups may contain
// each other.
func TestNestedGroups(t *testing.T) {
	u, srv := start(t)
	_, admin := grant(t, srv, "cf", "", password("admin", "pw"))
	_, joe := ask(t, srv, admin, "POST", "/Users", `{"userName":"joe","password":"x"}`)
	ask(t, srv, admin, "POST", "/oauth/clients", `{"client_id":"shop","client_secret":"s","authorized_grant_types":["password"],"scope":["a","b","c","openid"]}`)
	_, a := ask(t, srv, admin, "POST", "/Groups", fmt.Sprintf(`{"displayName":"a","members":[{"value":%q}]}`, joe["id"]))
	_, b := ask(t, srv, admin, "POST", "/Groups", fmt.Sprintf(`{"displayName":"b","members":[{"value":%q,"type":"GROUP"}]}`, a["id"]))
	if got, want := memberList(b), fmt.Sprintf("GROUP %s", a["id"]); got != want {
		t.Fatalf("got the members %s; want %s", got, want)
	}
	req, err := http.NewRequest("GET", srv.URL+"/Groups/"+b["id"].(string)+"/members?returnEntities=true", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "bearer "+admin["access_token"].(string))
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var members []struct {
		Entity struct{ ID, DisplayName string }
	}
	if err := json.NewDecoder(res.Body).Decode(&members); err != nil || len(members) != 1 || members[0].Entity.ID != a["id"] || members[0].Entity.DisplayName != "a" {
		t.Errorf("got the members %+v, %v; want the group a", members, err)
	}
	_, c := ask(t, srv, admin, "POST", "/Groups", `{"displayName":"c"}`)
	scopes := func() string {
		got := scopesOf(t, u, srv, "shop", "s", "joe")
		slices.Sort(got)
		return strings.Join(got, " ")
	}
	if got := scopes(); got != "a b openid" {
		t.Errorf("got the scopes %s", got)
	}
	cPath := "/Groups/" + c["id"].(string)
	if status, got := ask(t, srv, admin, "POST", cPath+"/members", fmt.Sprintf(`{"value":%q,"type":"GROUP"}`, b["id"])); status != 201 || got["type"] != "GROUP" || got["value"] != b["id"] || got["origin"] != "uaa" {
		t.Fatalf("got %d %v", status, got)
	}
	// A cycle: a is in b, which is in c, which is in a.
	if status, got := ask(t, srv, admin, "POST", "/Groups/"+a["id"].(string)+"/members", fmt.Sprintf(`{"value":%q,"type":"GROUP"}`, c["id"])); status != 201 {
		t.Fatalf("got %d %v", status, got)
	}
	if got := scopes(); got != "a b c openid" {
		t.Errorf("got the scopes %s", got)
	}
	_, shown := ask(t, srv, admin, "GET", "/Users/"+joe["id"].(string), "")
	for _, want := range []string{"display:a type:DIRECT", "display:b type:INDIRECT", "display:c type:INDIRECT", "display:uaa.user type:DIRECT"} {
		if !strings.Contains(fmt.Sprint(shown["groups"]), want) {
			t.Errorf("got the groups %v; want %s", shown["groups"], want)
		}
	}
	// Who loses a scope by the end of a membership loses the tokens that may have it.
	_, old := grant(t, srv, "shop", "s", password("joe", "x"))
	if status, got := ask(t, srv, admin, "DELETE", cPath+"/members/"+b["id"].(string), ""); status != 200 || got["type"] != "GROUP" {
		t.Errorf("got %d %v", status, got)
	}
	if _, err := u.Verify(t.Context(), old["access_token"].(string)); err == nil {
		t.Error("a token with a scope of a nested group that was taken away gives access")
	}
	if got := scopes(); got != "a b openid" {
		t.Errorf("got the scopes %s", got)
	}
	// What changes nothing of a user's scopes revokes nothing.
	_, kept := grant(t, srv, "shop", "s", password("joe", "x"))
	ask(t, srv, admin, "DELETE", "/Groups/"+a["id"].(string)+"/members/"+c["id"].(string), "")
	if _, err := u.Verify(t.Context(), kept["access_token"].(string)); err != nil {
		t.Errorf("a token of a user who kept all scopes: %v", err)
	}
	// A group that goes is in no group any more, and gives nothing.
	if status, _ := ask(t, srv, admin, "DELETE", "/Groups/"+a["id"].(string), ""); status != 200 {
		t.Errorf("got %d", status)
	}
	if _, got := ask(t, srv, admin, "GET", "/Groups/"+b["id"].(string), ""); memberList(got) != "" {
		t.Errorf("got the members %s", memberList(got))
	}
	if got := scopes(); got != "openid" {
		t.Errorf("got the scopes %s", got)
	}
}

// A PATCH adds and deletes members; meta.attributes empties (UAA: ScimGroup.patch).
func TestPatchGroup(t *testing.T) {
	_, srv := start(t)
	_, admin := grant(t, srv, "cf", "", password("admin", "pw"))
	id := map[string]string{}
	for _, name := range []string{"joe", "ann"} {
		_, user := ask(t, srv, admin, "POST", "/Users", fmt.Sprintf(`{"userName":%q,"password":"x"}`, name))
		id[name] = user["id"].(string)
	}
	_, inner := ask(t, srv, admin, "POST", "/Groups", `{"displayName":"inner"}`)
	id["inner"] = inner["id"].(string)
	_, g := ask(t, srv, admin, "POST", "/Groups", fmt.Sprintf(`{"displayName":"shop","description":"all","members":[{"value":%q}]}`, id["joe"]))
	path := "/Groups/" + g["id"].(string)
	for _, tt := range []struct {
		body, name, members string
		description         any
	}{
		{fmt.Sprintf(`{"members":[{"value":%q,"type":"USER"},{"value":%q,"type":"GROUP"}]}`, id["ann"], id["inner"]), "shop", "GROUP inner, USER ann, USER joe", "all"},
		{fmt.Sprintf(`{"members":[{"value":%q,"operation":"delete"}]}`, id["joe"]), "shop", "GROUP inner, USER ann", "all"},
		{`{"displayName":"store","description":"some"}`, "store", "GROUP inner, USER ann", "some"},
		{`{"meta":{"attributes":["description"]}}`, "store", "GROUP inner, USER ann", nil},
		{fmt.Sprintf(`{"meta":{"attributes":["MEMBERS"]},"members":[{"value":%q}]}`, id["joe"]), "store", "USER joe", nil},
		{`{"meta":{"attributes":["members"]}}`, "store", "", nil},
	} {
		status, got := scimChange(t, srv, admin, "PATCH", path, "*", tt.body)
		if status != 200 {
			t.Fatalf("%s: got %d %v", tt.body, status, got)
		}
		members := memberList(got)
		for name, guid := range id {
			members = strings.ReplaceAll(members, guid, name)
		}
		names := strings.Split(members, ", ")
		slices.Sort(names)
		if members = strings.Join(names, ", "); got["displayName"] != tt.name || got["description"] != tt.description || members != tt.members {
			t.Errorf("%s: got %v %v %s; want %s %v %s", tt.body, got["displayName"], got["description"], members, tt.name, tt.description, tt.members)
		}
	}
	_, shown := ask(t, srv, admin, "GET", path, "")
	if shown["meta"].(map[string]any)["version"] != 6.0 {
		t.Errorf("got %v; want version 6", shown["meta"])
	}
}

func TestRefusedMembers(t *testing.T) {
	_, srv := start(t)
	_, admin := grant(t, srv, "cf", "", password("admin", "pw"))
	_, joe := ask(t, srv, admin, "POST", "/Users", `{"userName":"joe","password":"x"}`)
	_, tokens := grant(t, srv, "cf", "", password("joe", "x"))
	_, g := ask(t, srv, admin, "POST", "/Groups", `{"displayName":"a"}`)
	id, path := g["id"].(string), "/Groups/"+g["id"].(string)
	self := fmt.Sprintf(`{"value":%q,"type":"GROUP"}`, id)
	for _, tt := range []struct {
		method, path, match, body string
		status                    int
		code, description         string
	}{ // UAA: JdbcScimGroupMembershipManager.validateRequest, ScimGroupEndpoints, ScimGroup.patch
		{"POST", path + "/members", "", self, 400, "invalid_scim_resource", "trying to nest group within itself, aborting"},
		{"POST", path + "/members", "", `{"value":"","type":"GROUP"}`, 400, "invalid_scim_resource", "group-id, member-id, origin and member-type must be non-empty"},
		{"POST", path + "/members", "", `{"value":"x","origin":""}`, 400, "invalid_scim_resource", "group-id, member-id, origin and member-type must be non-empty"},
		{"POST", path + "/members", "", `{"value":"x"}`, 404, "scim_resource_not_found", "User x does not exist"},
		{"POST", path + "/members", "", fmt.Sprintf(`{"value":%q,"type":"GROUP"}`, joe["id"]), 404, "scim_resource_not_found", fmt.Sprintf("Group %s does not exist", joe["id"])},
		{"POST", path + "/members", "", `{"value":"x","type":"CLIENT"}`, 400, "invalid_scim_resource", `Invalid type "CLIENT" of the group member x: USER and GROUP are accepted`},
		{"POST", "/Groups", "", fmt.Sprintf(`{"displayName":"b","members":[{"value":%q}]}`, id), 400, "invalid_scim_resource", "Invalid group member: " + id},
		{"PUT", path, "*", `{"displayName":"a","members":[{"value":"x"}]}`, 400, "scim", "User x does not exist"},
		{"PUT", path, "*", `{"displayName":"a","members":[` + self + `]}`, 400, "invalid_scim_resource", "trying to nest group within itself, aborting"},
		{"PATCH", path, "", `{}`, 400, "scim", "Missing If-Match for PATCH"},
		{"PATCH", path, "one", `{}`, 400, "scim", "Invalid version match header (should be a version number): one"},
		{"PATCH", path, `"9"`, `{}`, 409, "scim", "Incorrect result size: expected 1, actual 0"},
		{"PATCH", path, "*", `{"meta":{"attributes":["zoneId"]}}`, 400, "scim", "Cannot delete or change ZoneId"},
		{"PATCH", path, "*", `{"meta":{"attributes":["id"]}}`, 400, "scim", "Cannot delete or change ID"},
		{"PATCH", path, "*", `{"meta":{"attributes":["meta"]}}`, 400, "scim", `Attribute meta cannot be removed using "Meta.attributes"`},
		{"PATCH", path, "*", `{"members":[{"value":"x","type":"GROUP"}]}`, 400, "scim", "Group x does not exist"},
		{"PATCH", "/Groups/none", "*", `{}`, 404, "scim_resource_not_found", "Group none does not exist"},
		{"PATCH", "/Groups/" + groupID("openid"), "*", fmt.Sprintf(`{"members":[{"value":%q}]}`, joe["id"]), 409, "member_already_exists", "Trying to add member to default group"},
		{"DELETE", path, "9", "", 409, "scim", "error deleting group: " + id},
	} {
		status, got := scimChange(t, srv, admin, tt.method, tt.path, tt.match, tt.body)
		if status != tt.status || got["error"] != tt.code || got["error_description"] != tt.description {
			t.Errorf("%s %s %s: got %d %v; want %d %s %s", tt.method, tt.path, tt.body, status, got, tt.status, tt.code, tt.description)
		}
	}
	if status, got := scimChange(t, srv, tokens, "PATCH", path, "*", `{}`); status != 403 {
		t.Errorf("got %d %v; want 403", status, got)
	}
}
