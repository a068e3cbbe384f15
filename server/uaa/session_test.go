package uaa

import (
	"crypto/sha256"
	"encoding/base64"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
)

// browser is a client with cookies that follows nothing.
type browser struct {
	t    *testing.T
	base string
	http *http.Client
}

func newBrowser(t *testing.T, srv *httptest.Server) *browser {
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &browser{t, srv.URL, &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

func (b *browser) do(req *http.Request) (status int, to, text string) {
	b.t.Helper()
	req.Header.Set("Accept", "text/html,application/xhtml+xml")
	res, err := b.http.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	if res.StatusCode == 200 && !strings.Contains(res.Header.Get("Content-Security-Policy"), "default-src 'none'") {
		b.t.Errorf("%s has no policy", req.URL)
	}
	return res.StatusCode, res.Header.Get("Location"), string(body)
}

func (b *browser) get(path string) (status int, to, text string) {
	b.t.Helper()
	req, err := http.NewRequest("GET", b.base+path, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	return b.do(req)
}

var secretPattern = regexp.MustCompile(`name="X-Uaa-Csrf" value="([^"]+)"`)

// post sends a form with the secret of the page that has it.
func (b *browser) post(path, page string, form url.Values) (status int, to, text string) {
	b.t.Helper()
	if m := secretPattern.FindStringSubmatch(page); m != nil {
		form.Set("X-Uaa-Csrf", m[1])
	}
	req, err := http.NewRequest("POST", b.base+path, strings.NewReader(form.Encode()))
	if err != nil {
		b.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return b.do(req)
}

func (b *browser) logIn(next string) (to string) {
	b.t.Helper()
	_, _, page := b.get("/login")
	status, to, text := b.post("/login.do", page, url.Values{"username": {"admin"}, "password": {"pw"}, "next": {next}})
	if status != 303 {
		b.t.Fatalf("got %d %s", status, text)
	}
	return to
}

var codePattern = regexp.MustCompile(`<p class="code">([A-Z2-7]+)</p>`)

func TestPasscode(t *testing.T) {
	u, srv := start(t)
	b := newBrowser(t, srv)
	if status, to, _ := b.get("/passcode"); status != 302 || to != "/login?next=/passcode" {
		t.Fatalf("got %d to %s", status, to)
	}
	to := b.logIn("/passcode")
	_, _, page := b.get(to)
	m := codePattern.FindStringSubmatch(page)
	if m == nil {
		t.Fatalf("no code in %s", page)
	}
	form := url.Values{"grant_type": {"password"}, "passcode": {m[1]}}
	_, tokens := grant(t, srv, "cf", "", form)
	if id, err := u.Verify(t.Context(), tokens["access_token"].(string)); err != nil || id.Username != "admin" {
		t.Errorf("got %+v, %v", id, err)
	}
	if status, body := grant(t, srv, "cf", "", form); status != 401 || body["error_description"] != "Invalid passcode" {
		t.Errorf("twice: got %d %v", status, body)
	}
	_, _, page = b.get("/passcode")
	form.Set("passcode", codePattern.FindStringSubmatch(page)[1])
	if err := (scim{u}).setPassword(t.Context(), tokensUser(t, u, tokens), "new"); err != nil {
		t.Fatal(err)
	}
	if status, body := grant(t, srv, "cf", "", form); status != 401 {
		t.Errorf("after another password: got %d %v", status, body)
	}
	if status, to, _ := b.get("/passcode"); status != 302 || !strings.HasPrefix(to, "/login") {
		t.Errorf("the session outlives the password: got %d to %s", status, to)
	}
}

func tokensUser(t *testing.T, u *UAA, tokens map[string]any) string {
	t.Helper()
	id, err := u.Verify(t.Context(), tokens["access_token"].(string))
	if err != nil {
		t.Fatal(err)
	}
	return id.UserGUID
}

func TestLoginLeadsNowhereElse(t *testing.T) {
	for text, want := range map[string]string{
		"/passcode": "/passcode?", "/oauth/authorize?client_id=x": "/oauth/authorize?client_id=x",
		"": "/login", "https://evil.test/passcode": "/login", "//evil.test/passcode": "/login", `/\evil.test`: "/login", `\\evil.test/passcode`: "/login",
		"javascript:alert(1)": "/login", "/passcode/../x": "/login", "/v3/apps": "/login", "http:/passcode": "/login", "%zz": "/login",
	} {
		if got := next(text); got != want {
			t.Errorf("%s: got %s; want %s", text, got, want)
		}
	}
}

func TestHostileForms(t *testing.T) {
	_, srv := start(t)
	b := newBrowser(t, srv)
	right := url.Values{"username": {"admin"}, "password": {"pw"}}
	if status, _, _ := b.post("/login.do", "", right); status != 403 {
		t.Errorf("without cookie: got %d", status)
	}
	_, _, page := b.get("/login")
	if status, _, _ := b.post("/login.do", "", right); status != 403 {
		t.Errorf("without the page's secret: got %d", status)
	}
	right.Set("X-Uaa-Csrf", secretPattern.FindStringSubmatch(page)[1])
	for name, header := range map[string][2]string{"another site's": {"Sec-Fetch-Site", "cross-site"}, "an app's of the same domain": {"Sec-Fetch-Site", "same-site"}, "another origin's": {"Origin", "https://evil.test"}} {
		req, err := http.NewRequest("POST", srv.URL+"/login.do", strings.NewReader(right.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.Header.Set(header[0], header[1])
		if status, _, _ := b.do(req); status != 403 {
			t.Errorf("%s: got %d", name, status)
		}
	}
	status, _, text := b.post("/login.do", page, url.Values{"username": {`"><script>alert(1)</script>`}, "password": {"no"}, "next": {`"><script>`}})
	if status != 401 || strings.Contains(text, "<script>") || !strings.Contains(text, "Unable to verify") {
		t.Errorf("got %d %s", status, text)
	}
	if status, _, text := b.get("/oauth/authorize?response_type=code&redirect_uri=%3Cscript%3E&client_id=%3Cscript%3E"); status != 401 || strings.Contains(text, "<script>") {
		t.Errorf("got %d %s", status, text)
	}
}

func TestSessionEndsWithLogout(t *testing.T) {
	_, srv := start(t)
	b := newBrowser(t, srv)
	b.logIn("")
	_, _, page := b.get("/login")
	if !strings.Contains(page, "Logged in as <b>admin</b>") {
		t.Fatalf("got %s", page)
	}
	stolen := b.http.Jar.Cookies(&url.URL{Scheme: "http", Host: strings.TrimPrefix(srv.URL, "http://")})
	if status, to, _ := b.post("/logout.do", page, url.Values{}); status != 303 || to != "/login" {
		t.Errorf("got %d to %s", status, to)
	}
	req, err := http.NewRequest("GET", srv.URL+"/passcode", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range stolen {
		req.AddCookie(c)
	}
	if status, _, _ := newBrowser(t, srv).do(req); status != 302 {
		t.Errorf("the session outlives its logout: got %d", status)
	}
}

func TestCookiesOfTLS(t *testing.T) {
	u, _ := start(t)
	srv := httptest.NewTLSServer(u)
	defer srv.Close()
	req, err := http.NewRequest("GET", srv.URL+"/login", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "text/html")
	res, err := srv.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	c := res.Cookies()
	if len(c) != 1 || c[0].Name != "__Host-"+formCookie || !c[0].Secure || !c[0].HttpOnly || c[0].Path != "/" || c[0].Domain != "" {
		t.Errorf("got %+v", c)
	}
}

const (
	callback = "http://127.0.0.1:9999/cb?x=1"
	verifier = "a-verifier-that-is-long-enough-for-rfc-7636-0123"
)

// challenged is a query for a code, with PKCE.
func challenged(more ...string) url.Values {
	sum := sha256.Sum256([]byte(verifier))
	q := url.Values{"response_type": {"code"}, "client_id": {"web"}, "redirect_uri": {callback}, "state": {"s t"}, "nonce": {"n"},
		"code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])}, "code_challenge_method": {"S256"}}
	for i := 0; i < len(more); i += 2 {
		if q.Set(more[i], more[i+1]); more[i+1] == "" {
			q.Del(more[i])
		}
	}
	return q
}

// startWeb starts a UAA with a client that gets codes.
func startWeb(t *testing.T, client string) (*UAA, *httptest.Server, *browser) {
	t.Helper()
	u, srv := start(t)
	_, admin := grant(t, srv, "cf", "", password("admin", "pw"))
	if status, body := ask(t, srv, admin, "POST", "/oauth/clients", client); status != 201 {
		t.Fatalf("got %d %v", status, body)
	}
	return u, srv, newBrowser(t, srv)
}

const publicClient = `{"client_id":"web","name":"A <b>page</b>","authorized_grant_types":["authorization_code","refresh_token"],"scope":["openid","cloud_controller.read"],"redirect_uri":["` + callback + `"]}`

// queryOf are the parameters that a browser is sent back with.
func queryOf(t *testing.T, to string) url.Values {
	t.Helper()
	u, err := url.Parse(to)
	if err != nil || !strings.HasPrefix(to, "http://127.0.0.1:9999/cb?") || u.Query().Get("x") != "1" {
		t.Fatalf("got %q, %v", to, err)
	}
	return u.Query()
}

func TestAuthorizationCode(t *testing.T) {
	u, srv, b := startWeb(t, publicClient)
	asks := "/oauth/authorize?" + challenged().Encode()
	_, to, _ := b.get(asks)
	at, err := url.Parse(to)
	if err != nil || at.Path != "/login" {
		t.Fatalf("got %q, %v", to, err)
	}
	to = b.logIn(at.Query().Get("next"))
	_, _, page := b.get(to)
	if !strings.Contains(page, "A &lt;b&gt;page&lt;/b&gt;") || !strings.Contains(page, "cloud_controller.read") || strings.Contains(page, "uaa.admin") {
		t.Fatalf("got %s", page)
	}
	decide := func(say string) url.Values {
		_, to, _ := b.post("/oauth/authorize", page, url.Values{"next": {challenged().Encode()}, "user_oauth_approval": {say}})
		return queryOf(t, to)
	}
	if q := decide("false"); q.Get("error") != "access_denied" || q.Get("code") != "" || q.Get("state") != "s t" {
		t.Errorf("denied: got %v", q)
	}
	q := decide("true")
	form := url.Values{"grant_type": {"authorization_code"}, "client_id": {"web"}, "code": {q.Get("code")}, "redirect_uri": {callback}, "code_verifier": {verifier}}
	status, tokens := grant(t, srv, "", "", form)
	if status != 200 || tokens["scope"] != "cloud_controller.read openid" || tokens["id_token"] == nil {
		t.Fatalf("got %d %v", status, tokens)
	}
	if _, err := u.Verify(t.Context(), tokens["access_token"].(string)); err != nil {
		t.Error(err)
	}
	if _, err := u.Verify(t.Context(), tokens["id_token"].(string)); err == nil {
		t.Error("an ID token gives access")
	}
	if status, body := grant(t, srv, "", "", form); status != 400 || body["error"] != "invalid_grant" {
		t.Errorf("twice: got %d %v", status, body)
	}
	refresh := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {tokens["refresh_token"].(string)}}
	if status, body := grant(t, srv, "cf", "", refresh); status != 401 {
		t.Errorf("another client's refresh token: got %d %v", status, body)
	}
	if status, body := grant(t, srv, "web", "", refresh); status != 200 || body["scope"] != tokens["scope"] {
		t.Errorf("refresh: got %d %v", status, body)
	}
	refresh.Set("scope", "openid cloud_controller.write")
	if status, body := grant(t, srv, "web", "", refresh); status != 400 || body["error"] != "invalid_scope" {
		t.Errorf("more scopes: got %d %v", status, body)
	}
	for name, bad := range map[string][2]string{"another verifier": {"code_verifier", "x"}, "no verifier": {"code_verifier", ""}, "another URI": {"redirect_uri", callback + "&y"},
		"no URI": {"redirect_uri", ""}, "another code": {"code", "x"}} {
		form.Set("code", decide("true").Get("code"))
		good := form.Get(bad[0])
		form.Set(bad[0], bad[1])
		if status, body := grant(t, srv, "", "", form); status != 400 || body["error"] != "invalid_grant" {
			t.Errorf("%s: got %d %v", name, status, body)
		}
		form.Set(bad[0], good)
	}
}

func TestRefusedAuthorizations(t *testing.T) {
	_, _, b := startWeb(t, publicClient)
	for name, q := range map[string]url.Values{
		"an unknown client": challenged("client_id", "nope"), "a client without codes": challenged("client_id", "cf"),
		"another host": challenged("redirect_uri", "https://evil.test/cb?x=1"), "a longer path": challenged("redirect_uri", "http://127.0.0.1:9999/cb?x=1&y=2"),
		"a path above": challenged("redirect_uri", "http://127.0.0.1:9999/../cb?x=1"), "another port": challenged("redirect_uri", "http://127.0.0.1:9998/cb?x=1"),
	} {
		if status, to, _ := b.get("/oauth/authorize?" + q.Encode()); to != "" || status/100 != 4 {
			t.Errorf("%s: got %d to %s", name, status, to)
		}
	}
	for fault, q := range map[string]url.Values{
		"unsupported_response_type": challenged("response_type", "token"), "login_required": challenged("prompt", "none"), "invalid_request": challenged("code_challenge_method", "plain"),
	} {
		_, to, _ := b.get("/oauth/authorize?" + q.Encode())
		if got := queryOf(t, to).Get("error"); got != fault {
			t.Errorf("got %s; want %s", got, fault)
		}
	}
	_, to, _ := b.get("/oauth/authorize?" + challenged("code_challenge", "", "code_challenge_method", "").Encode())
	if got := queryOf(t, to).Get("error"); got != "invalid_request" {
		t.Errorf("a public client without PKCE: got %s", got)
	}
	b.logIn("")
	_, to, _ = b.get("/oauth/authorize?" + challenged("scope", "uaa.admin").Encode())
	if got := queryOf(t, to).Get("error"); got != "invalid_scope" {
		t.Errorf("a scope that the client has not: got %s", got)
	}
	if status, to, _ := b.post("/oauth/authorize", "", url.Values{"next": {challenged().Encode()}, "user_oauth_approval": {"true"}}); status != 403 || to != "" {
		t.Errorf("an approval without the page's secret: got %d to %s", status, to)
	}
}

// A client with a secret must send it; a trusted one needs no approval.
func TestConfidentialClient(t *testing.T) {
	_, srv, b := startWeb(t, strings.Replace(publicClient, `"name"`, `"client_secret":"s","autoapprove":true,"name"`, 1))
	b.logIn("")
	_, to, _ := b.get("/oauth/authorize?" + challenged("code_challenge", "", "code_challenge_method", "", "prompt", "none").Encode())
	form := url.Values{"grant_type": {"authorization_code"}, "code": {queryOf(t, to).Get("code")}, "redirect_uri": {callback}}
	if status, body := grant(t, srv, "web", "", form); status != 401 || body["error"] != "invalid_client" {
		t.Errorf("without secret: got %d %v", status, body)
	}
	if status, body := grant(t, srv, "web", "s", form); status != 200 {
		t.Errorf("got %d %v", status, body)
	}
}
