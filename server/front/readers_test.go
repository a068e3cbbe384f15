package front

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"cupola/server/uaa"
	"cupola/store"
	"cupola/store/cf"
)

// logReaders is those of the logs of an app in each of two spaces, and a user who is a
// developer of the first.
func logReaders(t *testing.T) Readers {
	t.Helper()
	s, err := store.Open(store.Config{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	rs := Readers{Store: s}
	if rs.UAA, err = uaa.New(t.Context(), uaa.Config{Store: s, Log: slog.New(slog.DiscardHandler)}); err != nil {
		t.Fatal(err)
	}
	guid := func(g string) cf.Resource { return cf.Resource{GUID: g} }
	err = s.Write(t.Context(), func(tx *store.Tx) error {
		if err := uaa.EnsureAdmin(tx, "pw"); err != nil {
			return err
		}
		if err := store.Orgs.Insert(tx, &cf.Org{Resource: guid("org"), Name: "org"}); err != nil {
			return err
		}
		for _, name := range []string{"mine", "theirs"} {
			if err := store.Spaces.Insert(tx, &cf.Space{Resource: guid("space-" + name), Name: name, OrgGUID: "org"}); err != nil {
				return err
			}
			if err := store.Apps.Insert(tx, &cf.App{Resource: guid(name), Name: name, SpaceGUID: "space-" + name, State: cf.Stopped}); err != nil {
				return err
			}
		}
		admin, err := store.Users.First(tx, store.Query{Where: map[string][]string{"usernames": {"admin"}}})
		if err != nil {
			return err
		}
		joe := &cf.User{Resource: guid("joe"), Username: "joe", Origin: uaa.Origin, PasswordHash: admin.PasswordHash}
		if err := store.Users.Insert(tx, joe); err != nil {
			return err
		}
		return store.Roles.Insert(tx, &cf.Role{Type: cf.SpaceDeveloper, UserGUID: "joe", OrgGUID: "org", SpaceGUID: "space-mine"})
	})
	if err != nil {
		t.Fatal(err)
	}
	return rs
}

// logsOf are those of the apps that a user may read with a token of the scopes.
func (rs Readers) logsOf(t *testing.T, user, scope string) ([]string, error) {
	t.Helper()
	form := url.Values{"grant_type": {"password"}, "username": {user}, "password": {"pw"}, "scope": {scope}}
	r := httptest.NewRequest("POST", "/oauth/token", strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.SetBasicAuth("cf", "")
	w := httptest.NewRecorder()
	rs.UAA.ServeHTTP(w, r)
	var got struct {
		Token string `json:"access_token"`
	}
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != http.StatusOK {
		t.Fatalf("got %d %s", w.Code, w.Body)
	}
	read := httptest.NewRequest("GET", "/api/v1/meta", nil)
	read.Header.Set("Authorization", "bearer "+got.Token)
	may, err := rs.mayRead(read, "mine", "theirs", "of a deployment")
	var all []string
	for id, ok := range may {
		if ok {
			all = append(all, id)
		}
	}
	slices.Sort(all)
	return all, err
}

func TestWhoMayReadLogs(t *testing.T) {
	rs := logReaders(t)
	for _, c := range []struct {
		user, scope string
		want        []string
	}{
		{"joe", "", []string{"mine"}},
		{"joe", "cloud_controller.read", []string{"mine"}},
		{"joe", "openid", nil}, // a client that was let see who its user is
		{"admin", "", []string{"mine", "of a deployment", "theirs"}},
		{"admin", "cloud_controller.admin", []string{"mine", "theirs"}},
	} {
		if got, err := rs.logsOf(t, c.user, c.scope); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s with %q: got %v, %v; want %v", c.user, c.scope, got, err, c.want)
		}
	}
	if may, err := rs.mayRead(httptest.NewRequest("GET", "/", nil), "mine"); err == nil || len(may) > 0 {
		t.Errorf("nobody: got %v, %v", may, err)
	}
}
