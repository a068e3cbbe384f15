package uaa

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"cupola/store"
)

func start(t *testing.T) (*UAA, *httptest.Server) {
	t.Helper()
	s, err := store.Open(store.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	u, err := New(context.Background(), Config{Store: s, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	hash, err := AdminHash(context.Background(), s, "pw")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Write(context.Background(), func(tx *store.Tx) error { return EnsureAdmin(tx, hash) }); err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(u)
	t.Cleanup(srv.Close)
	return u, srv
}

// grant posts a form as the client and returns status and JSON.
func grant(t *testing.T, srv *httptest.Server, client, secret string, form url.Values) (int, map[string]any) {
	t.Helper()
	req, _ := http.NewRequest("POST", srv.URL+"/oauth/token", strings.NewReader(form.Encode()))
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if client != "" {
		req.SetBasicAuth(client, secret)
	}
	return do(t, req)
}

func do(t *testing.T, req *http.Request) (int, map[string]any) {
	t.Helper()
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var body map[string]any
	if err := json.NewDecoder(res.Body).Decode(&body); err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, body
}

func password(user, pw string) url.Values {
	return url.Values{"grant_type": {"password"}, "username": {user}, "password": {pw}}
}

func TestPasswordGrant(t *testing.T) {
	u, srv := start(t)
	status, body := grant(t, srv, "cf", "", password("admin", "pw"))
	if status != 200 || body["token_type"] != "bearer" {
		t.Fatalf("got %d %v", status, body)
	}
	id, err := u.Verify(t.Context(), body["access_token"].(string))
	if err != nil || id.Username != "admin" || id.UserGUID == "" {
		t.Fatalf("got %+v, %v", id, err)
	}
	if _, err := u.Verify(t.Context(), body["refresh_token"].(string)); err == nil {
		t.Error("a refresh token gave access")
	}
	status, again := grant(t, srv, "cf", "", url.Values{"grant_type": {"refresh_token"}, "refresh_token": {body["refresh_token"].(string)}})
	if status != 200 || again["access_token"] == body["access_token"] {
		t.Errorf("refresh: got %d", status)
	}
}

func TestRefusedGrants(t *testing.T) {
	_, srv := start(t)
	_, good := grant(t, srv, "cf", "", password("admin", "pw"))
	for _, c := range []struct {
		name, client, secret string
		form                 url.Values
		status               int
		code                 string
	}{
		{"wrong password", "cf", "", password("admin", "no"), 401, "unauthorized"},
		{"unknown user", "cf", "", password("nobody", "no"), 401, "unauthorized"},
		{"unknown client", "evil", "", password("admin", "pw"), 401, "invalid_client"},
		{"no grant", "cf", "", url.Values{}, 400, "invalid_request"},
		{"odd grant", "cf", "", url.Values{"grant_type": {"implicit"}}, 400, "unsupported_grant_type"},
		{"access token as refresh token", "cf", "", url.Values{"grant_type": {"refresh_token"}, "refresh_token": {good["access_token"].(string)}}, 401, "invalid_token"},
		{"wrong client secret", "", "", url.Values{"grant_type": {"client_credentials"}, "client_id": {"admin"}, "client_secret": {"no"}}, 401, "invalid_client"},
	} {
		if status, body := grant(t, srv, c.client, c.secret, c.form); status != c.status || body["error"] != c.code {
			t.Errorf("%s: got %d %v; want %d %s", c.name, status, body, c.status, c.code)
		}
	}
}

func TestClientGrant(t *testing.T) {
	u, srv := start(t)
	_, body := grant(t, srv, "", "", url.Values{"grant_type": {"client_credentials"}, "client_id": {"admin"}, "client_secret": {"pw"}})
	id, err := u.Verify(t.Context(), body["access_token"].(string))
	if err != nil || id.ClientID != "admin" || id.UserGUID != "" {
		t.Errorf("got %+v, %v", id, err)
	}
}

func TestNewPasswordVoidsTokens(t *testing.T) {
	u, srv := start(t)
	_, body := grant(t, srv, "cf", "", password("admin", "pw"))
	_, client := grant(t, srv, "", "", url.Values{"grant_type": {"client_credentials"}, "client_id": {"admin"}, "client_secret": {"pw"}})
	path := "/Users/" + userID(t, srv, body) + "/password"
	if status, got := ask(t, srv, body, "PUT", path, `{"oldPassword":"pw","password":"new"}`); status != 200 {
		t.Fatalf("got %d %v", status, got)
	}
	if status, _ := grant(t, srv, "cf", "", url.Values{"grant_type": {"refresh_token"}, "refresh_token": {body["refresh_token"].(string)}}); status != 401 {
		t.Errorf("refresh: got %d; want 401", status)
	}
	for _, tokens := range []map[string]any{body, client} {
		if _, err := u.Verify(t.Context(), tokens["access_token"].(string)); err == nil {
			t.Error("a token of the old password gives access")
		}
	}
}

func TestTokensOfDeletedUsersAreVoid(t *testing.T) {
	u, srv := start(t)
	_, admin := grant(t, srv, "cf", "", password("admin", "pw"))
	_, joe := ask(t, srv, admin, "POST", "/Users", `{"userName":"joe","password":"x"}`)
	_, tokens := grant(t, srv, "cf", "", password("joe", "x"))
	if _, err := u.Verify(t.Context(), tokens["access_token"].(string)); err != nil {
		t.Fatal(err)
	}
	check := func() int {
		req, err := http.NewRequest("POST", srv.URL+"/check_token", strings.NewReader(url.Values{"token": {tokens["access_token"].(string)}}.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.SetBasicAuth("admin", "pw")
		status, _ := do(t, req)
		return status
	}
	if got := check(); got != 200 {
		t.Errorf("check_token: got %d; want 200", got)
	}
	if status, got := ask(t, srv, admin, "DELETE", "/Users/"+joe["id"].(string), ""); status != 200 {
		t.Fatalf("got %d %v", status, got)
	}
	if _, err := u.Verify(t.Context(), tokens["access_token"].(string)); err == nil {
		t.Error("the token gives access")
	}
	if got := check(); got != 400 {
		t.Errorf("check_token: got %d; want 400", got)
	}
	if status, _ := grant(t, srv, "cf", "", url.Values{"grant_type": {"refresh_token"}, "refresh_token": {tokens["refresh_token"].(string)}}); status != 401 {
		t.Errorf("refresh: got %d; want 401", status)
	}
}

func TestOldPasswordsAreNotGuessed(t *testing.T) {
	_, srv := start(t)
	_, admin := grant(t, srv, "cf", "", password("admin", "pw"))
	_, joe := ask(t, srv, admin, "POST", "/Users", `{"userName":"joe","password":"x"}`)
	_, tokens := grant(t, srv, "cf", "", password("joe", "x"))
	path := "/Users/" + joe["id"].(string) + "/password"
	for range lockoutFailures {
		if status, got := ask(t, srv, tokens, "PUT", path, `{"oldPassword":"wrong","password":"new"}`); status != 401 {
			t.Fatalf("got %d %v; want 401", status, got)
		}
	}
	if status, got := ask(t, srv, tokens, "PUT", path, `{"oldPassword":"x","password":"new"}`); status != 401 {
		t.Errorf("after so many guesses: got %d %v; want 401", status, got)
	}
	if status, got := ask(t, srv, tokens, "PUT", "/Users/"+userID(t, srv, admin)+"/password", `{"oldPassword":"pw","password":"new"}`); status != 403 {
		t.Errorf("another's password: got %d %v; want 403", status, got)
	}
	if status, got := ask(t, srv, admin, "PUT", path, `{"password":"new"}`); status != 200 {
		t.Errorf("an admin: got %d %v; want 200", status, got)
	}
}

// TestPasswordChangesThatAreRefused has the answers of UAA's PasswordChangeEndpoint.
func TestPasswordChangesThatAreRefused(t *testing.T) {
	_, srv := start(t)
	_, admin := grant(t, srv, "cf", "", password("admin", "pw"))
	_, made := ask(t, srv, admin, "POST", "/Users", `{"userName":"joe","password":"x"}`)
	_, joe := grant(t, srv, "cf", "", password("joe", "x"))
	own, joes := "/Users/"+userID(t, srv, admin)+"/password", "/Users/"+made["id"].(string)+"/password"
	for _, c := range []struct {
		name       string
		tokens     map[string]any
		path, body string
		status     int
		want       string
	}{
		{"no old password", joe, joes, `{"password":"new"}`, 400, "Previous password is required"},
		{"a wrong one", joe, joes, `{"oldPassword":"wrong","password":"new"}`, 401, "Old password is incorrect"},
		{"a wrong one, and no other", joe, joes, `{"oldPassword":"wrong","password":"wrong"}`, 401, "Old password is incorrect"},
		{"the same", joe, joes, `{"oldPassword":"x","password":"x"}`, 422, "Your new password cannot be the same as the old password."},
		{"an admin without", admin, own, `{"password":"new"}`, 400, "Previous password is required even for admin"},
		{"an admin's wrong one", admin, own, `{"oldPassword":"wrong","password":"new"}`, 401, "Old password is incorrect"},
		{"another's wrong one", admin, joes, `{"oldPassword":"wrong","password":"new"}`, 401, "Old password is incorrect"},
		{"another's same", admin, joes, `{"password":"x"}`, 422, "Your new password cannot be the same as the old password."},
	} {
		if status, got := ask(t, srv, c.tokens, "PUT", c.path, c.body); status != c.status || got["error_description"] != c.want {
			t.Errorf("%s: got %d %v; want %d %s", c.name, status, got, c.status, c.want)
		}
	}
	if status, got := ask(t, srv, admin, "PUT", joes, `{"oldPassword":"x","password":"new"}`); status != 200 {
		t.Errorf("another's right one: got %d %v; want 200", status, got)
	}
}

// ask makes a request with an access token.
func ask(t *testing.T, srv *httptest.Server, tokens map[string]any, method, path, body string) (int, map[string]any) {
	t.Helper()
	req, err := http.NewRequest(method, srv.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "bearer "+tokens["access_token"].(string))
	return do(t, req)
}

func userID(t *testing.T, srv *httptest.Server, tokens map[string]any) string {
	t.Helper()
	req, _ := http.NewRequest("GET", srv.URL+"/Users?filter="+url.QueryEscape(`userName eq "admin" and origin eq "uaa"`), nil)
	req.Header.Set("Authorization", "bearer "+tokens["access_token"].(string))
	status, body := do(t, req)
	if status != 200 || len(body["resources"].([]any)) != 1 {
		t.Fatalf("got %d %v", status, body)
	}
	return body["resources"].([]any)[0].(map[string]any)["id"].(string)
}

func TestUsersNeedScopes(t *testing.T) {
	_, srv := start(t)
	_, admin := grant(t, srv, "cf", "", password("admin", "pw"))
	req, _ := http.NewRequest("POST", srv.URL+"/Users", strings.NewReader(`{"userName":"joe","password":"x"}`))
	req.Header.Set("Authorization", "bearer "+admin["access_token"].(string))
	if status, body := do(t, req); status != 201 || body["userName"] != "joe" {
		t.Fatalf("got %d %v", status, body)
	}
	_, joe := grant(t, srv, "cf", "", password("joe", "x"))
	req, _ = http.NewRequest("GET", srv.URL+"/Users", nil)
	req.Header.Set("Authorization", "bearer "+joe["access_token"].(string))
	if status, body := do(t, req); status != 403 || body["error"] != "insufficient_scope" {
		t.Errorf("got %d %v; want 403", status, body)
	}
}
