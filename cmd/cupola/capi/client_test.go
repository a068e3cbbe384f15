package capi

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"cupola/cmd/cupola/command"
)

// TestErrors reads what each part of the daemon says of a request that fails.
func TestErrors(t *testing.T) {
	body := ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintln(w, body)
	}))
	defer server.Close()
	for said, want := range map[string]string{
		`{"errors": [{"detail": "Name is taken", "code": 1}, {"detail": "Too long"}]}`:      "Name is taken; Too long",
		`{"error": "invalid_scim_resource", "error_description": "No user"}`:                "No user",
		`{"code": 3, "message": "level must be debug, info, warn or error", "details": []}`: "level must be debug, info, warn or error",
		`{}`:      "400 Bad Request: {}",
		`<html>x`: "400 Bad Request: <html>x",
	} {
		body = said
		c := &Client{API: server.URL, HTTP: server.Client()}
		if err := c.Call(t.Context(), "GET", "/", nil, nil); err == nil || err.Error() != want {
			t.Errorf("%s: got %v; want %s", said, err, want)
		}
	}
}

// TestAwaitBuilds waits for the build of an app that is under way, which has ended
// when it is asked for the second time.
func TestAwaitBuilds(t *testing.T) {
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.RequestURI())
		switch {
		case r.URL.Path == "/v3/builds":
			fmt.Fprint(w, `{"resources": [{"guid": "b", "state": "STAGING"}]}`)
		case len(asked) == 2:
			fmt.Fprint(w, `{"guid": "b", "state": "STAGING"}`)
		default:
			fmt.Fprint(w, `{"guid": "b", "state": "FAILED", "error": "no buildpack"}`)
		}
	}))
	defer server.Close()
	if err := AwaitBuilds(t.Context(), &Client{API: server.URL, HTTP: server.Client()}, "a"); err != nil {
		t.Fatal(err)
	}
	if want := []string{"/v3/builds?app_guids=a&states=STAGING", "/v3/builds/b", "/v3/builds/b"}; !slices.Equal(asked, want) {
		t.Errorf("asked for %v; want %v", asked, want)
	}
}

// TestLogInFails says what a user can do about it.
func TestLogInFails(t *testing.T) {
	page := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>hello</html>") })
	stranger, secure, gone := httptest.NewServer(page), httptest.NewUnstartedServer(page), httptest.NewServer(page)
	secure.Config.ErrorLog = log.New(io.Discard, "", 0) // of clients that do not trust it
	secure.StartTLS()
	defer stranger.Close()
	defer secure.Close()
	gone.Close()
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprint(w, `{"error": "unauthorized", "error_description": "Bad credentials"}`)
	}))
	defer refusing.Close()
	nowhere := command.DaemonFlags{DataDir: filepath.Join(t.TempDir(), "none")}
	for _, c := range []struct {
		flags Flags
		want  string
	}{
		{Flags{API: gone.URL, User: "admin", Password: "p"}, "nothing listens at " + gone.URL + ": start a daemon with 'sudo cupola serve', or give its API URL with --api"},
		{Flags{API: stranger.URL, User: "admin", Password: "p"}, stranger.URL + " is not cupola's API: give its URL with --api"},
		{Flags{API: secure.URL, User: "admin", Password: "p"}, "this machine does not trust the certificate of " + secure.URL + ": trust the daemon's CA with 'sudo cupola trust', or with SSL_CERT_FILE=<data-dir>/ca.pem"},
		{Flags{API: refusing.URL, User: "joe", Password: "p"}, "log in as joe at " + refusing.URL + ": Bad credentials"},
		{Flags{API: "localhost:8080", User: "admin", Password: "p"}, `invalid --api "localhost:8080": give a URL like http://localhost:8080`},
		{Flags{API: gone.URL, User: "joe"}, "no password for joe: give --password or CUPOLA_PASSWORD"},
		{Flags{API: gone.URL, User: "admin", DaemonFlags: nowhere}, "no password: " + nowhere.DataDir + " has no daemon yet; start one with 'sudo cupola serve', or give --data-dir or --password"},
		{Flags{User: "admin", Password: "p", DaemonFlags: nowhere}, nowhere.DataDir + " has no daemon yet: start one with 'sudo cupola serve --data-dir " + nowhere.DataDir + "', or give its API URL with --api"},
	} {
		_, err := c.flags.Login(context.Background())
		if err == nil || err.Error() != c.want {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
	}
}

// TestTokenExpires has calls go on with another token, with their bodies; a daemon that
// refuses that one, too, is not asked for ever.
func TestTokenExpires(t *testing.T) {
	var logins, valid atomic.Int64
	daemon := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/oauth/token" {
			fmt.Fprintf(w, `{"access_token": "t%d"}`, logins.Add(1))
			return
		}
		if r.Header.Get("Authorization") != fmt.Sprintf("bearer t%d", valid.Load()) {
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, `{"errors": [{"detail": "Invalid Auth Token"}]}`)
			return
		}
		io.Copy(w, r.Body)
	}))
	defer daemon.Close()
	valid.Store(1)
	c, err := Login(t.Context(), daemon.URL, "admin", "p")
	if err != nil {
		t.Fatal(err)
	}
	valid.Store(2)
	var calls sync.WaitGroup
	for range 10 {
		calls.Go(func() {
			var got Doc
			if err := c.Call(t.Context(), "POST", "/x", Doc{"a": "b"}, &got); err != nil || got["a"] != "b" {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
	calls.Wait()
	if n := logins.Load(); n != 2 {
		t.Errorf("%d logins; want 2", n)
	}
	valid.Store(0)
	if err := c.Call(t.Context(), "GET", "/x", nil, nil); err == nil || err.Error() != "Invalid Auth Token" {
		t.Errorf("got %v", err)
	}
	if n := logins.Load(); n != 3 {
		t.Errorf("%d logins; want 3", n)
	}
	valid.Store(3)
	req, err := http.NewRequestWithContext(t.Context(), "POST", daemon.URL+"/x", io.NopCloser(strings.NewReader("{}")))
	if err != nil {
		t.Fatal(err)
	}
	valid.Store(9)
	if _, err := c.Send(req); err == nil || err.Error() != "Invalid Auth Token" {
		t.Errorf("got %v; want a body that was read not sent again", err)
	}
}

// TestFilterIsExact makes filters of names with what the API gives a meaning: commas and escapes.
func TestFilterIsExact(t *testing.T) {
	for value, want := range map[string]string{"": "", "web": "names=web", "a,b": "names=a%252Cb", "50%41": "names=50%252541", "a b&c": "names=a+b%26c"} {
		if got := Filter("names", value); got != want {
			t.Errorf("%q: got %s; want %s", value, got, want)
		}
	}
}
