package front

import (
	"encoding/base64"
	"encoding/json"
	"errors"
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

// logReaders is those of the logs of an app in each of two spaces, and of two service instances of the second, of which one is shared; and a user who is a
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
	hash, err := uaa.AdminHash(t.Context(), s, "pw")
	if err != nil {
		t.Fatal(err)
	}
	err = s.Write(t.Context(), func(tx *store.Tx) error {
		if err := uaa.EnsureAdmin(tx, hash); err != nil {
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
		db := &cf.ServiceInstance{Resource: guid("db"), Name: "db", Type: cf.UserProvided, SpaceGUID: "space-theirs"}
		shared := &cf.ServiceInstance{Resource: guid("shared"), Name: "shared", Type: cf.UserProvided, SpaceGUID: "space-theirs", SharedSpaces: []string{"space-mine"}}
		if err := errors.Join(store.ServiceInstances.Insert(tx, db), store.ServiceInstances.Insert(tx, shared)); err != nil {
			return err
		}
		if err := store.BOSHDeployments.Insert(tx, &cf.BOSHDeployment{Resource: guid("deployment"), Name: "nats"}); err != nil {
			return err
		}
		admin, err := store.Users.First(tx, store.Query{Where: map[string][]string{"usernames": {"admin"}}})
		if err != nil {
			return err
		}
		for name, scope := range map[string]string{"reader": "cloud_controller.admin_read_only", "auditor": "cloud_controller.global_auditor"} {
			u := &cf.User{Resource: guid(name), Username: name, Origin: uaa.Origin, PasswordHash: admin.PasswordHash, Scopes: []string{scope}}
			if err := store.Users.Insert(tx, u); err != nil {
				return err
			}
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

// token is one of the user with the scopes.
func (rs Readers) token(t *testing.T, user, scope string) string {
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
	return got.Token
}

// logsOf are those that a user may read with a token of the scopes.
func (rs Readers) logsOf(t *testing.T, user, scope string) ([]string, error) {
	t.Helper()
	read := httptest.NewRequest("GET", "/api/v1/meta", nil)
	read.Header.Set("Authorization", "bearer "+rs.token(t, user, scope))
	may, err := rs.mayRead(read, "mine", "theirs", "db", "shared", "deployment", "of a deployment")
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
		{"joe", "", []string{"mine", "shared"}},
		{"joe", "cloud_controller.read", []string{"mine", "shared"}},
		{"joe", "openid", nil}, // a client that was let see who its user is
		{"admin", "", []string{"db", "deployment", "mine", "of a deployment", "shared", "theirs"}},
		{"admin", "cloud_controller.admin", []string{"db", "deployment", "mine", "shared", "theirs"}},
		{"reader", "", []string{"db", "deployment", "mine", "shared", "theirs"}},
		{"auditor", "", []string{"db", "mine", "shared", "theirs"}},
	} {
		if got, err := rs.logsOf(t, c.user, c.scope); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s with %q: got %v, %v; want %v", c.user, c.scope, got, err, c.want)
		}
	}
	if may, err := rs.mayRead(httptest.NewRequest("GET", "/", nil), "mine"); err == nil || len(may) > 0 {
		t.Errorf("nobody: got %v, %v", may, err)
	}
}

// What a stream's reader may read changes with roles, scopes and tokens.
func TestWhoMayReadStreams(t *testing.T) {
	rs := logReaders(t)
	read := func(user, scope string) func(sources ...string) bool {
		r := httptest.NewRequest("GET", "/v2/read", nil)
		r.Header.Set("Authorization", "bearer "+rs.token(t, user, scope))
		reader, err := rs.Reader(r)
		if err != nil || reader.GUID == "" {
			t.Fatalf("%s: got %+v, %v", user, reader, err)
		}
		return func(sources ...string) (ok bool) {
			t.Helper()
			err := rs.Store.Read(t.Context(), func(tx *store.Tx) error {
				ok, err = reader.May(tx, []string{"doppler.firehose", "logs.admin"}, sources)
				return err
			})
			if err != nil {
				t.Error(err)
			}
			return ok
		}
	}
	joe, admin, narrow := read("joe", ""), read("admin", ""), read("admin", "cloud_controller.admin")
	for n, c := range []struct{ got, want bool }{
		{joe("mine"), true}, {joe("theirs"), false}, {joe("mine", "theirs"), false}, {joe(), false}, {joe("of a deployment"), false}, {joe("shared"), true}, {joe("db"), false}, {joe("deployment"), false},
		{admin(), true}, {admin("of a deployment"), true}, {narrow("theirs"), true}, {narrow(), false},
		{read("reader", "")("deployment", "mine"), true}, {read("auditor", "")("deployment"), false}, {read("auditor", "")("mine"), true},
	} {
		if c.got != c.want {
			t.Errorf("%d: got %v", n, c.got)
		}
	}
	change := func(f func(tx *store.Tx) error) {
		t.Helper()
		if err := rs.Store.Write(t.Context(), f); err != nil {
			t.Fatal(err)
		}
	}
	change(func(tx *store.Tx) error { // admin loses the firehose
		u, err := store.Users.First(tx, store.Query{Where: map[string][]string{"usernames": {"admin"}}})
		if err != nil {
			return err
		}
		u.Scopes = slices.DeleteFunc(u.Scopes, func(s string) bool { return s == "doppler.firehose" })
		return store.Users.Update(tx, u)
	})
	if admin() || !admin("mine") {
		t.Error("who lost the scope still reads everything, or sees no app")
	}
	change(func(tx *store.Tx) error {
		r, err := store.Roles.First(tx, store.Query{Where: map[string][]string{"user_guids": {"joe"}}})
		if err != nil {
			return err
		}
		return store.Roles.Delete(tx, r.GUID)
	})
	if joe("mine") {
		t.Error("who lost the role still reads")
	}
	change(func(tx *store.Tx) error { return store.Users.Delete(tx, "joe") })
	if joe("mine") {
		t.Error("who is gone still reads")
	}
}

// A stream ends with `cf logout`, which revokes its token.
func TestStreamsEndWithTheirToken(t *testing.T) {
	rs := logReaders(t)
	token := rs.token(t, "joe", "")
	r := httptest.NewRequest("GET", "/v2/read", nil)
	r.Header.Set("Authorization", "bearer "+token)
	reader, err := rs.Reader(r)
	if err != nil {
		t.Fatal(err)
	}
	may := func() (ok bool) {
		err := rs.Store.Read(t.Context(), func(tx *store.Tx) error {
			ok, err = reader.May(tx, nil, []string{"mine"})
			return err
		})
		if err != nil {
			t.Error(err)
		}
		return ok
	}
	if !may() {
		t.Fatal("the token does not read")
	}
	var claims struct{ JTI string }
	body, err := base64.RawURLEncoding.DecodeString(strings.Split(token, ".")[1])
	if err == nil {
		err = json.Unmarshal(body, &claims)
	}
	if err != nil {
		t.Fatal(err)
	}
	revoke := httptest.NewRequest("DELETE", "/oauth/token/revoke/"+claims.JTI, nil)
	revoke.Header.Set("Authorization", "bearer "+token)
	w := httptest.NewRecorder()
	rs.UAA.ServeHTTP(w, revoke)
	if w.Code != http.StatusOK || may() {
		t.Errorf("got %d; the revoked token reads: %v", w.Code, may())
	}
	if _, err := rs.Reader(r); err == nil {
		t.Error("a revoked token opens another stream")
	}
}
