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
	"testing/synctest"
	"time"

	"cupola/store"
)

func start(t *testing.T) (*UAA, *httptest.Server) {
	t.Helper()
	s, err := store.Open(store.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	u, err := New(context.Background(), s, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Write(context.Background(), func(tx *store.Tx) error { return EnsureAdmin(tx, "pw") }); err != nil {
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
	id, err := u.Verify(body["access_token"].(string))
	if err != nil || id.Username != "admin" || id.UserGUID == "" {
		t.Fatalf("got %+v, %v", id, err)
	}
	if _, err := u.Verify(body["refresh_token"].(string)); err == nil {
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
	id, err := u.Verify(body["access_token"].(string))
	if err != nil || id.ClientID != "admin" || id.UserGUID != "" {
		t.Errorf("got %+v, %v", id, err)
	}
}

func TestNewPasswordVoidsRefreshTokens(t *testing.T) {
	_, srv := start(t)
	_, body := grant(t, srv, "cf", "", password("admin", "pw"))
	id := userID(t, srv, body)
	req, _ := http.NewRequest("PUT", srv.URL+"/Users/"+id+"/password", strings.NewReader(`{"oldPassword":"pw","password":"new"}`))
	req.Header.Set("Authorization", "bearer "+body["access_token"].(string))
	if status, got := do(t, req); status != 200 {
		t.Fatalf("got %d %v", status, got)
	}
	if status, _ := grant(t, srv, "cf", "", url.Values{"grant_type": {"refresh_token"}, "refresh_token": {body["refresh_token"].(string)}}); status != 401 {
		t.Errorf("got %d; want 401", status)
	}
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

func TestFiveFailuresLockOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLockout()
		for range lockoutFailures {
			if !l.allows("Joe") {
				t.Fatal("locked too early")
			}
			l.failed("joe")
		}
		if l.allows("joe") {
			t.Error("not locked")
		}
		time.Sleep(lockoutTime + time.Second)
		if !l.allows("joe") {
			t.Error("still locked")
		}
	})
}

func FuzzParseFilter(f *testing.F) {
	f.Add(`userName eq "x" and origin eq "uaa"`)
	f.Add(`id eq "\""`)
	f.Fuzz(func(t *testing.T, s string) {
		if where, err := parseFilter(s); err == nil && s != "" && len(where) == 0 {
			t.Errorf("%q: got no condition and no error", s)
		}
	})
}
