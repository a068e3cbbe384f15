package uaa

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

const workerClient = `{"client_id":"worker","client_secret":"s3cret","authorized_grant_types":["client_credentials"],"authorities":["cloud_controller.read","uaa.resource"]}`

func credentialsOf(id, secret string) url.Values {
	return url.Values{"grant_type": {"client_credentials"}, "client_id": {id}, "client_secret": {secret}}
}

func TestRegisteredClient(t *testing.T) {
	u, srv := start(t)
	_, admin := grant(t, srv, "cf", "", password("admin", "pw"))
	status, made := ask(t, srv, admin, "POST", "/oauth/clients", workerClient)
	if status != 201 || made["client_id"] != "worker" || made["client_secret"] != nil {
		t.Fatalf("got %d %v", status, made)
	}
	_, tokens := grant(t, srv, "", "", credentialsOf("worker", "s3cret"))
	id, err := u.Verify(t.Context(), tokens["access_token"].(string))
	if err != nil || id.ClientID != "worker" || id.UserGUID != "" || len(id.Scopes) != 2 {
		t.Fatalf("got %+v, %v", id, err)
	}
	if tokens["refresh_token"] != nil {
		t.Error("a client got a refresh token")
	}
	if _, narrow := grant(t, srv, "worker", "s3cret", url.Values{"grant_type": {"client_credentials"}, "scope": {"uaa.resource uaa.admin"}}); narrow["scope"] != "uaa.resource" {
		t.Errorf("got scope %v", narrow["scope"])
	}
	if status, all := ask(t, srv, admin, "GET", "/oauth/clients?filter="+url.QueryEscape(`client_id eq "worker"`), ""); status != 200 || all["totalResults"] != 1.0 {
		t.Errorf("list: got %d %v", status, all)
	}
	if status, body := ask(t, srv, admin, "PUT", "/oauth/clients/worker/secret", `{"secret":"other"}`); status != 200 {
		t.Errorf("secret: got %d %v", status, body)
	}
	if _, err := u.Verify(t.Context(), tokens["access_token"].(string)); err == nil {
		t.Error("a token of the old secret gives access")
	}
	_, tokens = grant(t, srv, "", "", credentialsOf("worker", "other"))
	if status, body := ask(t, srv, admin, "DELETE", "/oauth/clients/worker", ""); status != 200 {
		t.Errorf("delete: got %d %v", status, body)
	}
	if _, err := u.Verify(t.Context(), tokens["access_token"].(string)); err == nil {
		t.Error("a deleted client's token gives access")
	}
	if status, body := grant(t, srv, "", "", credentialsOf("worker", "other")); status != 401 || body["error"] != "invalid_client" {
		t.Errorf("deleted: got %d %v", status, body)
	}
}

func TestRefusedClients(t *testing.T) {
	_, srv := start(t)
	_, admin := grant(t, srv, "cf", "", password("admin", "pw"))
	code := func(uri string) string {
		return `{"client_id":"c","client_secret":"s","authorized_grant_types":["authorization_code"],"redirect_uri":["` + uri + `"]}`
	}
	for name, c := range map[string]struct {
		body   string
		status int
	}{
		"no ID":                 {`{"client_secret":"s","authorized_grant_types":["client_credentials"]}`, 400},
		"no grant":              {`{"client_id":"c","client_secret":"s"}`, 400},
		"an odd grant":          {`{"client_id":"c","client_secret":"s","authorized_grant_types":["implicit"]}`, 400},
		"no secret":             {`{"client_id":"c","authorized_grant_types":["client_credentials"]}`, 400},
		"a long secret":         {`{"client_id":"c","client_secret":"` + strings.Repeat("s", 73) + `","authorized_grant_types":["client_credentials"]}`, 400},
		"no redirect URI":       {`{"client_id":"c","client_secret":"s","authorized_grant_types":["authorization_code"]}`, 400},
		"a pattern":             {code("https://*.example.com/"), 400},
		"a script":              {code("javascript:alert(1)"), 400},
		"data":                  {code("data:text/html,x"), 400},
		"a fragment":            {code("https://example.com/#x"), 400},
		"a user":                {code("https://user@example.com/"), 400},
		"no host":               {code("https:///x"), 400},
		"tokens without end":    {`{"client_id":"c","client_secret":"s","authorized_grant_types":["client_credentials"],"access_token_validity":99999999}`, 400},
		"a client of our own":   {`{"client_id":"cf","client_secret":"s","authorized_grant_types":["client_credentials"]}`, 409},
		"no JSON":               {`client`, 400},
		"a URI of the loopback": {code("http://127.0.0.1:9999/cb"), 201},
	} {
		if status, body := ask(t, srv, admin, "POST", "/oauth/clients", c.body); status != c.status {
			t.Errorf("%s: got %d %v; want %d", name, status, body, c.status)
		}
	}
	if status, body := ask(t, srv, admin, "POST", "/oauth/clients", code("http://127.0.0.1/")); status != 409 {
		t.Errorf("twice: got %d %v", status, body)
	}
	for _, path := range []string{"/oauth/clients/cf", "/oauth/clients/admin"} {
		if status, body := ask(t, srv, admin, "DELETE", path, ""); status != 403 {
			t.Errorf("delete %s: got %d %v", path, status, body)
		}
	}
	ask(t, srv, admin, "POST", "/Users", `{"userName":"joe","password":"x"}`)
	_, joe := grant(t, srv, "cf", "", password("joe", "x"))
	for _, c := range []struct{ method, path string }{{"POST", "/oauth/clients"}, {"GET", "/oauth/clients"}, {"GET", "/oauth/clients/cf"}, {"DELETE", "/oauth/clients/c"},
		{"PUT", "/oauth/clients/c"}, {"PUT", "/oauth/clients/c/secret"}, {"GET", "/Groups"}, {"PATCH", "/Users/x/status"}, {"GET", "/oauth/token/revoke/client/c"}} {
		if status, body := ask(t, srv, joe, c.method, c.path, workerClient); status != 403 {
			t.Errorf("%s %s: got %d %v; want 403", c.method, c.path, status, body)
		}
	}
}

func TestClientsAreLockedOut(t *testing.T) {
	_, srv := start(t)
	_, admin := grant(t, srv, "cf", "", password("admin", "pw"))
	ask(t, srv, admin, "POST", "/oauth/clients", workerClient)
	for range lockoutFailures {
		grant(t, srv, "", "", credentialsOf("worker", "no"))
	}
	if status, body := grant(t, srv, "", "", credentialsOf("worker", "s3cret")); status != 401 || body["error_description"] != "Bad credentials" {
		t.Errorf("got %d %v", status, body)
	}
	if status, body := grant(t, srv, "worker", "s3cret", password("admin", "pw")); status != 401 {
		t.Errorf("got %d %v", status, body)
	}
}

// A client that shows no secret is refused, and locks nobody out.
func TestNoSecretIsNoGuess(t *testing.T) {
	_, srv := start(t)
	_, admin := grant(t, srv, "cf", "", password("admin", "pw"))
	ask(t, srv, admin, "POST", "/oauth/clients", workerClient)
	for range lockoutFailures + 1 {
		for _, client := range []string{"admin", "worker", "none"} {
			if status, body := grant(t, srv, "", "", credentialsOf(client, "")); status != 401 || body["error_description"] != "Bad credentials" {
				t.Fatalf("%s: got %d %v; want 401", client, status, body)
			}
		}
	}
	for client, secret := range map[string]string{"admin": "pw", "worker": "s3cret"} {
		if status, body := grant(t, srv, "", "", credentialsOf(client, secret)); status != 200 {
			t.Errorf("%s: got %d %v", client, status, body)
		}
	}
	if status, body := grant(t, srv, "cf", "", password("admin", "pw")); status != 200 {
		t.Errorf("the user admin: got %d %v", status, body)
	}
}

// introspectAs posts a token as a client.
func introspectAs(t *testing.T, endpoint, secret, token string) (int, map[string]any) {
	t.Helper()
	req, err := http.NewRequest("POST", endpoint, strings.NewReader(url.Values{"token": {token}}.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.SetBasicAuth("worker", secret)
	return do(t, req)
}

func TestIntrospectionAndRevocation(t *testing.T) {
	u, srv := start(t)
	_, admin := grant(t, srv, "cf", "", password("admin", "pw"))
	ask(t, srv, admin, "POST", "/oauth/clients", workerClient)
	_, joe := ask(t, srv, admin, "POST", "/Users", `{"userName":"joe","password":"x"}`)
	_, tokens := grant(t, srv, "cf", "", password("joe", "x"))
	access := tokens["access_token"].(string)
	if status, body := introspectAs(t, srv.URL+"/introspect", "s3cret", access); status != 200 || body["active"] != true || body["user_name"] != "joe" {
		t.Errorf("got %d %v", status, body)
	}
	for _, bad := range []string{"", "x.y.z", tokens["refresh_token"].(string)} {
		if status, body := introspectAs(t, srv.URL+"/introspect", "s3cret", bad); status != 200 || body["active"] != false || len(body) != 1 {
			t.Errorf("%.10s: got %d %v", bad, status, body)
		}
	}
	if status, body := introspectAs(t, srv.URL+"/introspect", "no", access); status != 401 {
		t.Errorf("a wrong secret: got %d %v", status, body)
	}
	if status, body := ask(t, srv, tokens, "GET", "/userinfo", ""); status != 200 || body["user_name"] != "joe" || body["sub"] != joe["id"] {
		t.Errorf("userinfo: got %d %v", status, body)
	}
	if status := send(t, srv.URL, admin, "DELETE", "/oauth/token/revoke/"+strings.Repeat("x", 65)); status != 404 {
		t.Errorf("a long ID: got %d", status)
	}
	_, mine := grant(t, srv, "cf", "", password("joe", "x"))
	if status := send(t, srv.URL, tokens, "DELETE", "/oauth/token/revoke/"+mine["jti"].(string)); status != 403 {
		t.Errorf("another token's: got %d", status)
	}
	if status := send(t, srv.URL, tokens, "DELETE", "/oauth/token/revoke/"+tokens["jti"].(string)); status != 200 {
		t.Errorf("revoke: got %d", status)
	}
	if _, err := u.Verify(t.Context(), access); err == nil {
		t.Error("a revoked token gives access")
	}
	if status, body := introspectAs(t, srv.URL+"/check_token", "s3cret", access); status != 400 || body["error"] != "invalid_token" {
		t.Errorf("check: got %d %v", status, body)
	}
	if status := send(t, srv.URL, admin, "GET", "/oauth/token/revoke/user/"+joe["id"].(string)); status != 200 {
		t.Errorf("revoke user: got %d", status)
	}
	if _, err := u.Verify(t.Context(), mine["access_token"].(string)); err == nil {
		t.Error("a token of a user whose are all revoked gives access")
	}
	if status, _ := grant(t, srv, "cf", "", url.Values{"grant_type": {"refresh_token"}, "refresh_token": {mine["refresh_token"].(string)}}); status != 401 {
		t.Errorf("refresh: got %d", status)
	}
}

// `cf logout` shows the refresh token to revoke that one.
func TestLogoutRevokesTheRefreshToken(t *testing.T) {
	u, srv := start(t)
	_, tokens := grant(t, srv, "cf", "", password("admin", "pw"))
	c, err := u.Keys.parse(tokens["refresh_token"].(string))
	if err != nil {
		t.Fatal(err)
	}
	refresh := map[string]any{"access_token": tokens["refresh_token"]}
	if status := send(t, srv.URL, refresh, "DELETE", "/oauth/token/revoke/"+tokens["jti"].(string)); status != 403 {
		t.Errorf("another token, by a refresh token of an admin: got %d", status)
	}
	if status := send(t, srv.URL, refresh, "DELETE", "/oauth/token/revoke/"+c.ID); status != 200 {
		t.Errorf("got %d", status)
	}
	if status, _ := grant(t, srv, "cf", "", url.Values{"grant_type": {"refresh_token"}, "refresh_token": {tokens["refresh_token"].(string)}}); status != 401 {
		t.Errorf("refresh: got %d", status)
	}
}

// send makes a request of which the status alone matters.
func send(t *testing.T, base string, tokens map[string]any, method, path string) int {
	t.Helper()
	req, err := http.NewRequest(method, base+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "bearer "+tokens["access_token"].(string))
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	return res.StatusCode
}

func TestGroups(t *testing.T) {
	u, srv := start(t)
	_, admin := grant(t, srv, "cf", "", password("admin", "pw"))
	_, joe := ask(t, srv, admin, "POST", "/Users", `{"userName":"joe","password":"x"}`)
	status, found := ask(t, srv, admin, "GET", "/Groups?filter="+url.QueryEscape(`displayName eq "cloud_controller.admin"`), "")
	if status != 200 || found["totalResults"] != 1.0 {
		t.Fatalf("got %d %v", status, found)
	}
	g := found["resources"].([]any)[0].(map[string]any)
	path := "/Groups/" + g["id"].(string)
	if status, body := ask(t, srv, admin, "POST", path+"/members", `{"value":"`+joe["id"].(string)+`","type":"USER"}`); status != 201 {
		t.Fatalf("got %d %v", status, body)
	}
	_, tokens := grant(t, srv, "cf", "", password("joe", "x"))
	if id, err := u.Verify(t.Context(), tokens["access_token"].(string)); err != nil || !strings.Contains(strings.Join(id.Scopes, " "), "cloud_controller.admin") {
		t.Errorf("got %+v, %v", id, err)
	}
	if _, body := ask(t, srv, admin, "GET", path, ""); len(body["members"].([]any)) != 2 {
		t.Errorf("got %v", body)
	}
	if status, body := ask(t, srv, admin, "POST", path+"/members", `{"value":"`+joe["id"].(string)+`"}`); status != 409 {
		t.Errorf("twice: got %d %v", status, body)
	}
	if status, body := ask(t, srv, admin, "DELETE", path+"/members/"+joe["id"].(string), ""); status != 200 {
		t.Errorf("got %d %v", status, body)
	}
	if _, err := u.Verify(t.Context(), tokens["access_token"].(string)); err == nil {
		t.Error("a token with a scope that was taken away gives access")
	}
	for _, bad := range []string{"/Groups/nope", "/Groups/nope/members"} {
		if status, body := ask(t, srv, admin, "GET", bad, ""); status != 404 {
			t.Errorf("%s: got %d %v", bad, status, body)
		}
	}
}

func TestUsersByPage(t *testing.T) {
	_, srv := start(t)
	_, admin := grant(t, srv, "cf", "", password("admin", "pw"))
	for _, name := range []string{"b", "c", "a"} {
		ask(t, srv, admin, "POST", "/Users", `{"userName":"`+name+`","password":"x"}`)
	}
	for query, want := range map[string]string{
		"sortBy=userName&count=2":                                   "a,admin 4",
		"sortBy=userName&startIndex=3&count=2":                      "b,c 4",
		"sortBy=userName&sortOrder=descending&count=1":              "c 4",
		"startIndex=99":                                             " 4",
		"startIndex=-5&count=-1&sortBy=userName":                    "a 4",
		"filter=" + url.QueryEscape(`userName sw "a"`) + "&count=9": "admin,a 2",
	} {
		_, body := ask(t, srv, admin, "GET", "/Users?"+query, "")
		var names []string
		for _, one := range body["resources"].([]any) {
			names = append(names, one.(map[string]any)["userName"].(string))
		}
		if got := strings.Join(names, ",") + " " + fmt.Sprint(body["totalResults"]); got != want {
			t.Errorf("%s: got %q; want %q", query, got, want)
		}
	}
	if status, body := ask(t, srv, admin, "GET", "/Users?filter="+url.QueryEscape(`password sw "$"`), ""); status != 400 {
		t.Errorf("got %d %v", status, body)
	}
}

func TestUnlock(t *testing.T) {
	_, srv := start(t)
	_, admin := grant(t, srv, "cf", "", password("admin", "pw"))
	_, joe := ask(t, srv, admin, "POST", "/Users", `{"userName":"joe","password":"x"}`)
	for range lockoutFailures {
		grant(t, srv, "cf", "", password("joe", "no"))
	}
	path := "/Users/" + joe["id"].(string) + "/status"
	if status, body := ask(t, srv, admin, "PATCH", path, `{"locked":true}`); status != 400 {
		t.Errorf("got %d %v", status, body)
	}
	if status, body := ask(t, srv, admin, "PATCH", path, `{"locked":false}`); status != 200 {
		t.Errorf("got %d %v", status, body)
	}
	if status, body := grant(t, srv, "cf", "", password("joe", "x")); status != 200 {
		t.Errorf("got %d %v", status, body)
	}
}

// Who may make clients makes none that may do more than himself.
func TestWhoWritesClientsIsNoAdmin(t *testing.T) {
	_, srv := start(t)
	_, admin := grant(t, srv, "cf", "", password("admin", "pw"))
	ask(t, srv, admin, "POST", "/oauth/clients", `{"client_id":"maker","client_secret":"s","authorized_grant_types":["client_credentials"],"authorities":["clients.write","clients.read","cloud_controller.read"]}`)
	ask(t, srv, admin, "POST", "/oauth/clients", workerClient)
	_, maker := grant(t, srv, "", "", credentialsOf("maker", "s"))
	client := func(id, grants, scopes, authorities string) string {
		return fmt.Sprintf(`{"client_id":%q,"client_secret":"s","authorized_grant_types":[%q],"scope":[%s],"authorities":[%s]}`, id, grants, scopes, authorities)
	}
	for name, c := range map[string]struct {
		body   string
		status int
	}{
		"an admin":                 {client("a", "client_credentials", "", `"uaa.admin"`), 400},
		"one of Cloud Controller":  {client("b", "client_credentials", "", `"cloud_controller.admin"`), 400},
		"by its own name":          {client("cloud_controller", "client_credentials", "", `"cloud_controller.admin"`), 400},
		"whose users are admins":   {client("d", "client_credentials", `"cloud_controller.admin"`, ""), 400},
		"that takes passwords":     {client("e", "password", "", ""), 400},
		"what it may itself":       {client("f", "client_credentials", `"cloud_controller.read"`, `"cloud_controller.read"`), 201},
		"what is of the new alone": {client("g", "client_credentials", `"g.read"`, `"maker.x"`), 201},
	} {
		if status, body := ask(t, srv, maker, "POST", "/oauth/clients", c.body); status != c.status {
			t.Errorf("%s: got %d %v; want %d", name, status, body, c.status)
		}
	}
	if status, body := ask(t, srv, maker, "PUT", "/oauth/clients/f", client("f", "client_credentials", "", `"scim.write"`)); status != 400 {
		t.Errorf("update: got %d %v", status, body)
	}
	if status, body := ask(t, srv, maker, "PUT", "/oauth/clients/maker", client("maker", "client_credentials", "", `"clients.write","uaa.admin"`)); status != 400 {
		t.Errorf("its own: got %d %v", status, body)
	}
	if status, body := ask(t, srv, admin, "PUT", "/oauth/clients/f", client("f", "client_credentials", "", `"scim.write"`)); status != 200 {
		t.Errorf("an admin: got %d %v", status, body)
	}
}
