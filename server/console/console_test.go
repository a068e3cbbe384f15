package console

import (
	"archive/zip"
	"bufio"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"cupola/examples"
	"cupola/server/uaa"
	"cupola/store"
	"cupola/store/cf"
)

// site is a daemon's console with an app in each of two spaces; joe is a developer
// of the first.
type site struct {
	*Console
	store *store.Store
	url   string
}

func newSite(t *testing.T) *site {
	t.Helper()
	s, err := store.Open(store.Config{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	guid := func(g string) cf.Resource { return cf.Resource{GUID: g} }
	at := &site{store: s}
	hash, err := uaa.AdminHash(t.Context(), s, "pw")
	if err != nil {
		t.Fatal(err)
	}
	at.write(t, func(tx *store.Tx) error {
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
		admin, err := store.Users.First(tx, store.Query{Where: map[string][]string{"usernames": {"admin"}}})
		if err != nil {
			return err
		}
		if err := store.Users.Insert(tx, &cf.User{Resource: guid("joe"), Username: "joe", Origin: uaa.Origin, PasswordHash: admin.PasswordHash}); err != nil {
			return err
		}
		return store.Roles.Insert(tx, &cf.Role{Resource: guid("role"), Type: cf.SpaceDeveloper, UserGUID: "joe", OrgGUID: "org", SpaceGUID: "space-mine"})
	})
	at.serve(t)
	return at
}

func (at *site) write(t *testing.T, f func(*store.Tx) error) {
	t.Helper()
	if err := at.store.Write(t.Context(), f); err != nil {
		t.Fatal(err)
	}
}

// serve starts a daemon's console on the store.
func (at *site) serve(t *testing.T) {
	t.Helper()
	u, err := uaa.New(t.Context(), uaa.Config{Store: at.store, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	at.Console, err = New(Config{Store: at.store, UAA: u, Domain: "cf.test", Assets: fstest.MapFS{"index.html": {Data: []byte("<title>cupola</title>")}}, Stop: t.Context(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	control := http.NewServeMux()
	control.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { // says what reached the API
		_, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		id, err := u.Verify(r.Context(), token)
		if err != nil {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		io.WriteString(w, r.Method+" "+r.RequestURI+" "+id.Username+" "+strconv.Itoa(len(r.Cookies())))
	})
	control.HandleFunc("/v2/read", func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	for _, p := range uaa.Paths() {
		control.Handle(p, u)
	}
	control.Handle(Path, at.Handler(control))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); at.Run(ctx) }()
	server := httptest.NewServer(at.Home(control))
	t.Cleanup(func() { server.CloseClientConnections(); server.Close(); cancel(); <-ended })
	at.url = server.URL
}

// browser is a client with cookies.
func browser(t *testing.T) *http.Client {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &http.Client{Jar: jar}
}

// logIn goes through the UAA's page as a browser does.
func (at *site) logIn(t *testing.T, user string) *http.Client {
	t.Helper()
	b := browser(t)
	page := at.get(t, b, "/console/login?next=/console/apps", "text/html")
	secret := regexp.MustCompile(`name="X-Uaa-Csrf" value="([^"]+)"`).FindStringSubmatch(page.body)
	next := regexp.MustCompile(`name="next" value="([^"]+)"`).FindStringSubmatch(page.body)
	if secret == nil || next == nil {
		t.Fatalf("got no form: %s", page.body)
	}
	form := url.Values{"X-Uaa-Csrf": {secret[1]}, "next": {strings.ReplaceAll(next[1], "&amp;", "&")}, "username": {user}, "password": {"pw"}}
	res, err := b.PostForm(at.url+"/login.do", form)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if to := res.Header.Get("Refresh"); res.StatusCode != http.StatusOK || to != "0; url=/console/apps" {
		t.Fatalf("got %d, on to %q", res.StatusCode, to)
	}
	return b
}

type answer struct {
	status int
	body   string
	header http.Header
}

func (at *site) get(t *testing.T, b *http.Client, path, accept string) answer {
	t.Helper()
	return at.do(t, b, "GET", path, http.Header{"Accept": {accept}})
}

func (at *site) do(t *testing.T, b *http.Client, method, path string, header http.Header) answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, at.url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	maps.Copy(r.Header, header)
	res, err := b.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{res.StatusCode, string(body), res.Header}
}

// TestSessionCallsTheAPI wants the API's paths called as the session's user and
// without the cookie, nothing without a session, nothing of the UAA's pages and
// tokens, and no change that another site asks for.
func TestSessionCallsTheAPI(t *testing.T) {
	at := newSite(t)
	b := at.logIn(t, "joe")
	same := http.Header{"Sec-Fetch-Site": {"same-origin"}}
	for _, c := range []struct {
		method, path string
		header       http.Header
		status       int
		body         string
	}{
		{"GET", "/console/api/v3/apps?names=a%2Cb", nil, 200, "GET /v3/apps?names=a%2Cb joe 0"},
		{"GET", "/console/api/v3/apps/a%2Fb", nil, 200, "GET /v3/apps/a%2Fb joe 0"},
		{"GET", "/console/api/v3", nil, 200, "GET /v3 joe 0"},
		{"GET", "/console/api/", nil, 200, "GET / joe 0"},
		{"DELETE", "/console/api/v3/apps/x", same, 200, "DELETE /v3/apps/x joe 0"},
		{"DELETE", "/console/api/v3/apps/x", http.Header{"Sec-Fetch-Site": {"cross-site"}}, 403, ""},
		{"POST", "/console/api/v3/apps", http.Header{"Origin": {"https://evil.test"}}, 403, ""},
		{"GET", "/console/api/oauth/authorize?client_id=ssh-proxy&response_type=code", nil, 404, ""},
		{"POST", "/console/api/oauth/token", same, 404, ""},
		{"GET", "/console/api/passcode", nil, 404, ""},
		{"GET", "/console/api/v3evil", nil, 404, ""},
		{"GET", "/console/api/console/api/v3", nil, 404, ""},
	} {
		got := at.do(t, b, c.method, c.path, c.header)
		if got.status != c.status || c.body != "" && got.body != c.body {
			t.Errorf("%s %s %v: got %d %s; want %d %s", c.method, c.path, c.header, got.status, got.body, c.status, c.body)
		}
	}
	for _, path := range []string{"/console/api/v3/apps", "/console/events", "/console/terminal?process=p&index=0"} {
		if got := at.get(t, browser(t), path, "*/*"); got.status != 401 {
			t.Errorf("without a session %s: got %d", path, got.status)
		}
	}
	if got := at.get(t, browser(t), "/console/apps/x/logs", "text/html"); got.body != "<title>cupola</title>" || !strings.Contains(got.header.Get("Content-Security-Policy"), "require-trusted-types-for 'script'") {
		t.Errorf("got %s with %v", got.body, got.header)
	}
}

// TestLoginLeadsNowhereElse wants no other site named as the page after a login.
func TestLoginLeadsNowhereElse(t *testing.T) {
	for target, want := range map[string]bool{"/console/": true, "/console/apps?q=a#b": true, "": false, "/v3": false, "//evil.test/console/": false, "https://evil.test/console/": false,
		`/\evil.test/console/`: false, "/console/\r\nSet-Cookie: a=b": false, `/console/\evil`: false} {
		if got := ours(target); got != want {
			t.Errorf("%q: got %v", target, got)
		}
	}
	at := newSite(t)
	b := at.logIn(t, "joe")
	b.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	if got := at.get(t, b, "/console/login?next=https://evil.test/console/", "text/html"); got.status != http.StatusSeeOther || got.header.Get("Location") != Path {
		t.Errorf("got %d to %s", got.status, got.header.Get("Location"))
	}
}

// TestSessionsExpire wants a session that was not used for long to be over, and an
// old one though it was.
func TestSessionsExpire(t *testing.T) {
	at := newSite(t)
	l, err := at.UAA.LoginOf(t.Context(), "joe")
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(at.url)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	for name, c := range map[string]struct {
		created, seen time.Time
		status        int
	}{
		"good": {now.Add(-longestLife + time.Hour), now.Add(-idleLife + time.Hour), 200},
		"idle": {now.Add(-idleLife - time.Hour), now.Add(-idleLife - time.Minute), 401},
		"old":  {now.Add(-longestLife - time.Minute), now, 401},
	} {
		at.write(t, func(tx *store.Tx) error {
			return store.ConsoleSessions.Add(tx, store.ConsoleSession{Key: keyOf(name), UserGUID: l.UserGUID, Signature: l.Signature, CreatedAt: c.created, SeenAt: c.seen}, time.Time{})
		})
		b := browser(t)
		b.Jar.SetCookies(u, []*http.Cookie{{Name: cookieName, Value: name}})
		if got := at.get(t, b, "/console/api/v3", "*/*"); got.status != c.status {
			t.Errorf("%s: got %d", name, got.status)
		}
	}
}

// TestInviteIsGoodOnce wants the address of `cupola open` to log in one browser.
func TestInviteIsGoodOnce(t *testing.T) {
	at := newSite(t)
	path, err := at.Invite(t.Context(), "joe")
	if err != nil {
		t.Fatal(err)
	}
	b := browser(t)
	if got := at.get(t, b, path, "text/html"); got.status != 200 {
		t.Errorf("got %d %s", got.status, got.body)
	}
	if got := at.get(t, b, "/console/api/v3", "*/*"); got.body != "GET /v3 joe 0" {
		t.Errorf("got %s", got.body)
	}
	for _, p := range []string{path, "/console/open?token=", "/console/open"} {
		if got := at.get(t, browser(t), p, "text/html"); got.status != 401 {
			t.Errorf("%s: got %d", p, got.status)
		}
	}
	late, err := at.Invite(t.Context(), "joe")
	if err != nil {
		t.Fatal(err)
	}
	at.opens.mu.Lock()
	for key, w := range at.opens.waiting {
		w.until = time.Now().Add(-time.Second)
		at.opens.waiting[key] = w
	}
	at.opens.mu.Unlock()
	if got := at.get(t, browser(t), late, "text/html"); got.status != 401 {
		t.Errorf("got %d after the minute", got.status)
	}
	if _, err := at.Invite(t.Context(), "nobody"); !store.IsNotFound(err) {
		t.Errorf("got %v for a user that is not there", err)
	}
}

// events reads a stream of events.
type events struct {
	t    *testing.T
	in   *bufio.Scanner
	last string // ID
	end  func()
}

func (at *site) events(t *testing.T, b *http.Client, after string) *events {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, "GET", at.url+"/console/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	if after != "" {
		r.Header.Set("Last-Event-ID", after)
	}
	res, err := b.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("got %d %s", res.StatusCode, res.Header.Get("Content-Type"))
	}
	t.Cleanup(func() { cancel(); res.Body.Close() })
	return &events{t, bufio.NewScanner(res.Body), after, cancel}
}

type said struct {
	Hello   *hello
	Changes []change
	End     string
}

// next is the next message; ok is false at the stream's end. Its number follows the
// last one's.
func (e *events) next() (m said, ok bool) {
	e.t.Helper()
	for e.in.Scan() {
		line := e.in.Text()
		if id, ok := strings.CutPrefix(line, "id: "); ok {
			if got, want := parseID(id).messages, parseID(e.last).messages+1; got != want {
				e.t.Errorf("got message %d; want %d", got, want)
			}
			e.last = id
		}
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			if err := json.Unmarshal([]byte(data), &m); err != nil {
				e.t.Fatal(err)
			}
			return m, true
		}
	}
	return m, false
}

// until reads messages until one has the change.
func (e *events) until(kind, guid string) (all []change) {
	e.t.Helper()
	for {
		m, ok := e.next()
		if !ok {
			e.t.Fatalf("the stream ended before %s %s: %v", kind, guid, all)
		}
		all = append(all, m.Changes...)
		for _, c := range m.Changes {
			if c.Kind == kind && c.GUID == guid {
				return all
			}
		}
	}
}

func (at *site) touch(t *testing.T, apps ...string) {
	t.Helper()
	at.write(t, func(tx *store.Tx) error {
		for _, guid := range apps {
			a, err := store.Apps.Get(tx, guid)
			if err != nil {
				return err
			}
			a.Name += "x"
			if err := store.Apps.Update(tx, a); err != nil {
				return err
			}
		}
		return nil
	})
}

// TestEventsAreOfWhatAUserSees wants a user told of the user's spaces alone, an admin
// of all, each message numbered, and a stream that was cut resumed without a gap; what
// another daemon did in between is named as unknown.
func TestEventsAreOfWhatAUserSees(t *testing.T) {
	at := newSite(t)
	joe, admin := at.logIn(t, "joe"), at.logIn(t, "admin")
	js, as := at.events(t, joe, ""), at.events(t, admin, "")
	m, _ := js.next()
	if m.Hello == nil || m.Hello.User.Name != "joe" || m.Hello.Admin || m.Hello.Reads || m.Hello.Resumed {
		t.Errorf("got %+v", m.Hello)
	}
	if m, _ := as.next(); m.Hello == nil || !m.Hello.Admin || !m.Hello.Reads {
		t.Errorf("got %+v", m.Hello)
	}
	at.touch(t, "theirs")
	as.until("app", "theirs")
	at.touch(t, "mine")
	as.until("app", "mine")
	for _, c := range js.until("app", "mine") {
		if c.GUID == "theirs" || c.Space == "space-theirs" {
			t.Errorf("joe learns of %+v", c)
		}
	}
	// What is of an app is placed by it, also once it is gone.
	at.write(t, func(tx *store.Tx) error {
		for _, app := range []string{"mine", "theirs"} {
			if err := store.Tasks.Insert(tx, &cf.Task{Resource: cf.Resource{GUID: "task-of-" + app}, AppGUID: app, Name: "t", State: cf.TaskPending}); err != nil {
				return err
			}
			if err := store.AppJobs.Insert(tx, &cf.AppJob{Resource: cf.Resource{GUID: "job-of-" + app}, AppGUID: app, Kind: cf.KindCall, Name: app}); err != nil {
				return err
			}
		}
		return nil
	})
	learned := js.until("app_job", "job-of-mine") // with the task, of the same commit
	if !slices.ContainsFunc(learned, func(c change) bool { return c.Kind == "task" && c.GUID == "task-of-mine" }) {
		t.Errorf("got %+v; want the task", learned)
	}
	for _, c := range learned {
		if c.App != "mine" || c.Space != "space-mine" {
			t.Errorf("got %+v", c)
		}
	}
	// Of what only some may see, everybody learns that something changed, and no more.
	at.write(t, func(tx *store.Tx) error {
		return store.OrgQuotas.Insert(tx, &cf.OrgQuota{Resource: cf.Resource{GUID: "secret-quota"}, Name: "secret"})
	})
	js.until("quota", anyGUID)
	as.until("quota", anyGUID)
	js.end()
	at.touch(t, "mine")
	as.until("app", "mine")
	js = at.events(t, joe, js.last)
	if m, _ := js.next(); m.Hello == nil || !m.Hello.Resumed {
		t.Errorf("got %+v after a cut", m.Hello)
	}
	js.until("app", "mine")
	at.serve(t) // another daemon
	again := at.events(t, at.cookiesOf(t, joe, js), js.last)
	if m, _ := again.next(); m.Hello == nil || m.Hello.Resumed {
		t.Errorf("got %+v of another daemon", m.Hello)
	}
	at.write(t, func(tx *store.Tx) error { return store.Apps.Delete(tx, "theirs") })
	at.write(t, func(tx *store.Tx) error { return store.Apps.Delete(tx, "mine") })
	for _, c := range again.until("app", "mine") {
		if c.GUID == "theirs" || c.GUID == "task-of-theirs" {
			t.Errorf("joe learns of %+v", c)
		}
	}
}

// TestOnlyWhoSeesAllLearnsOfBOSH wants nothing of what belongs to no space told to
// others, and many rows at once told to all, since nobody knows whose they are.
func TestOnlyWhoSeesAllLearnsOfBOSH(t *testing.T) {
	joe, admin := newViewer("joe", &store.Scope{}), newViewer("admin", nil)
	for _, c := range []struct {
		row      store.Touched
		everyone bool
	}{
		{store.Touched{Table: "bosh_deployments"}, false},
		{store.Touched{Table: "stacks"}, true},
		{store.Touched{Table: "apps"}, true}, // too many to name
		{store.Touched{Table: "apps", Values: []string{"an-app", "a-space"}}, false},
	} {
		_, all := admin.show(changeOf(c.row))
		if _, one := joe.show(changeOf(c.row)); !all || one != c.everyone {
			t.Errorf("%+v: an admin learns of it: %v; joe: %v", c.row, all, one)
		}
	}
}

// cookiesOf is a browser with another's session at the server of now, whose port is
// another.
func (at *site) cookiesOf(t *testing.T, b *http.Client, _ *events) *http.Client {
	t.Helper()
	u, err := url.Parse(at.url)
	if err != nil {
		t.Fatal(err)
	}
	next := browser(t)
	next.Jar.SetCookies(u, b.Jar.Cookies(u)) // cookies have no port
	return next
}

// TestStreamsEndWithTheirSession wants what was open to end when the session, the
// user or the password goes, and no changes of a space any longer that the user left.
func TestStreamsEndWithTheirSession(t *testing.T) {
	for name, end := range map[string]func(*site, *http.Client){
		"logout": func(at *site, b *http.Client) {
			if got := at.do(t, b, "POST", "/console/logout", http.Header{"Sec-Fetch-Site": {"same-origin"}}); got.status != 204 {
				t.Errorf("got %d", got.status)
			}
		},
		"password": func(at *site, _ *http.Client) {
			at.write(t, func(tx *store.Tx) error {
				u, err := store.Users.Get(tx, "joe")
				if err != nil {
					return err
				}
				u.PasswordHash = "other"
				return store.Users.Update(tx, u)
			})
		},
		"user": func(at *site, _ *http.Client) {
			at.write(t, func(tx *store.Tx) error { return store.Users.Delete(tx, "joe") })
		},
	} {
		t.Run(name, func(t *testing.T) {
			at := newSite(t)
			b := at.logIn(t, "joe")
			e := at.events(t, b, "")
			e.next()
			logs, err := b.Get(at.url + "/console/api/v2/read?log")
			if err != nil {
				t.Fatal(err)
			}
			defer logs.Body.Close()
			end(at, b)
			var last said
			for m, ok := e.next(); ok; m, ok = e.next() {
				last = m
			}
			if last.End != "logout" {
				t.Errorf("got %+v at the end", last)
			}
			if _, err := io.ReadAll(logs.Body); err != nil {
				t.Error(err)
			}
			if got := at.get(t, b, "/console/api/v3", "*/*"); got.status != 401 {
				t.Errorf("got %d after it", got.status)
			}
		})
	}
}

// TestALostRoleTakesItsEvents wants a user who leaves a space to learn nothing of it
// any longer, from the change on that took the role.
func TestALostRoleTakesItsEvents(t *testing.T) {
	at := newSite(t)
	e := at.events(t, at.logIn(t, "joe"), "")
	e.next()
	at.touch(t, "mine")
	e.until("app", "mine")
	at.write(t, func(tx *store.Tx) error { return store.Roles.Delete(tx, "role") })
	e.until("role", "role") // the user's own
	at.touch(t, "mine")
	at.write(t, func(tx *store.Tx) error {
		return store.Roles.Insert(tx, &cf.Role{Resource: cf.Resource{GUID: "next"}, Type: cf.SpaceDeveloper, UserGUID: "joe", OrgGUID: "org", SpaceGUID: "space-theirs"})
	})
	for _, c := range e.until("role", "next") {
		if c.Kind == "app" {
			t.Errorf("got %+v", c)
		}
	}
	at.touch(t, "theirs")
	e.until("app", "theirs")
}

// TestAUserHasTwentyStreams wants one more refused until one ends.
func TestAUserHasTwentyStreams(t *testing.T) {
	at := newSite(t)
	b := at.logIn(t, "joe")
	var open []*events
	for range maxStreams {
		e := at.events(t, b, "")
		e.next()
		open = append(open, e)
	}
	if got := at.get(t, b, "/console/events", "*/*"); got.status != http.StatusTooManyRequests {
		t.Fatalf("got %d", got.status)
	}
	if got := at.get(t, at.logIn(t, "admin"), "/console/api/v3", "*/*"); got.status != 200 {
		t.Errorf("another user: got %d", got.status)
	}
	open[0].end()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		r, _ := http.NewRequestWithContext(t.Context(), "GET", at.url+"/console/events", nil)
		res, err := b.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if res.StatusCode == http.StatusOK {
			return
		}
	}
	t.Error("no stream is free after one has ended")
}

// TestSamplesArePushable wants each sample listed with its manifest, and its source
// in a zip.
func TestSamplesArePushable(t *testing.T) {
	at := newSite(t)
	var all []sample
	if err := json.Unmarshal([]byte(at.get(t, browser(t), "/console/samples", "*/*").body), &all); err != nil {
		t.Fatal(err)
	}
	if len(all) != len(examples.Names) {
		t.Errorf("got %d samples; want %d", len(all), len(examples.Names))
	}
	for _, s := range all {
		body := at.get(t, browser(t), "/console/samples/"+s.Name+".zip", "*/*").body
		z, err := zip.NewReader(strings.NewReader(body), int64(len(body)))
		if err != nil {
			t.Fatal(err)
		}
		f, err := z.Open("manifest.yml")
		if err != nil {
			t.Fatal(err)
		}
		if text, err := io.ReadAll(f); err != nil || string(text) != s.Manifest || s.About == "" || strings.ContainsAny(s.About, "`\n") {
			t.Errorf("got %+v, %s, %v", s, text, err)
		}
	}
	if got := at.get(t, browser(t), "/console/samples/..%2Fdemo.zip", "*/*"); got.status != 404 {
		t.Errorf("got %d", got.status)
	}
}
