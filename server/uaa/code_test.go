package uaa

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"cupola/store/cf"
)

// askCode asks for a code and gives it, or the answer's status.
func askCode(t *testing.T, srv *httptest.Server, tokens map[string]any, query string) (code string, status int) {
	t.Helper()
	req, err := http.NewRequest("GET", srv.URL+"/oauth/authorize?"+query, nil)
	if err != nil {
		t.Fatal(err)
	}
	if tokens != nil {
		req.Header.Set("Authorization", "bearer "+tokens["access_token"].(string))
	}
	res, err := http.DefaultTransport.RoundTrip(req) // which follows nothing
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	to, err := url.Parse(res.Header.Get("Location"))
	if err != nil {
		t.Fatal(err)
	}
	return to.Query().Get("code"), res.StatusCode
}

const codeQuery = "response_type=code&client_id=ssh-proxy"

func TestCodes(t *testing.T) {
	u, srv := start(t)
	_, tokens := grant(t, srv, "cf", "", password("admin", "pw"))
	code, status := askCode(t, srv, tokens, codeQuery)
	if status != 302 || code == "" {
		t.Fatalf("got %d, code %q", status, code)
	}
	id, err := u.Redeem(t.Context(), SSHClient, code)
	if err != nil || id.Username != "admin" || id.UserGUID == "" || len(id.Scopes) == 0 {
		t.Errorf("got %+v, %v", id, err)
	}
	if _, err := u.Redeem(t.Context(), SSHClient, code); err == nil {
		t.Error("a code was good twice")
	}
	code, _ = askCode(t, srv, tokens, codeQuery)
	if _, err := u.Redeem(t.Context(), "other", code); err == nil {
		t.Error("a code was good for another client")
	}
	if _, err := u.Redeem(t.Context(), SSHClient, code); err == nil {
		t.Error("a code that another client showed was good")
	}
	if _, err := u.Redeem(t.Context(), SSHClient, ""); err == nil {
		t.Error("no code was good")
	}
}

func TestCodesAreRefused(t *testing.T) {
	_, srv := start(t)
	_, tokens := grant(t, srv, "cf", "", password("admin", "pw"))
	_, client := grant(t, srv, "", "", url.Values{"grant_type": {"client_credentials"}, "client_id": {"admin"}, "client_secret": {"pw"}})
	refresh := map[string]any{"access_token": tokens["refresh_token"]}
	for _, c := range []struct {
		name   string
		tokens map[string]any
		query  string
		status int
	}{
		{"no token", nil, codeQuery, 401},
		{"a refresh token", refresh, codeQuery, 401},
		{"a client's token", client, codeQuery, 403},
		{"another client", tokens, "response_type=code&client_id=cf", 401},
		{"another answer", tokens, "response_type=token&client_id=ssh-proxy", 400},
	} {
		if code, status := askCode(t, srv, c.tokens, c.query); code != "" || status != c.status {
			t.Errorf("%s: got %d, code %q; want %d", c.name, status, code, c.status)
		}
	}
}

func TestNewPasswordVoidsCodes(t *testing.T) {
	u, srv := start(t)
	_, tokens := grant(t, srv, "cf", "", password("admin", "pw"))
	code, _ := askCode(t, srv, tokens, codeQuery)
	if status, got := ask(t, srv, tokens, "PUT", "/Users/"+userID(t, srv, tokens)+"/password", `{"oldPassword":"pw","password":"new"}`); status != 200 {
		t.Fatalf("got %d %v", status, got)
	}
	if _, err := u.Redeem(t.Context(), SSHClient, code); err == nil {
		t.Error("a code of the old password is good")
	}
}

func TestCodesExpireAndAreFew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := codes{waiting: map[string]grantedCode{}}
		next := func(user string) string {
			<-time.After(time.Second)
			return c.grant(grantedCode{Identity: cf.Identity{UserGUID: user}, expires: time.Now().Add(codeLife)})
		}
		other, first := next("other"), next("user")
		for range codesOfUser {
			next("user")
		}
		if _, ok := c.redeem(first); ok {
			t.Error("the oldest of too many codes is good")
		}
		if _, ok := c.redeem(other); !ok {
			t.Error("a user's code was lost to another's")
		}
		<-time.After(codeLife)
		next("other")
		if len(c.waiting) != 1 {
			t.Errorf("%d codes wait; want the expired ones gone", len(c.waiting))
		}
	})
}
