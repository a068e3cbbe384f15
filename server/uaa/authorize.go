package uaa

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"cupola/store"
	"cupola/store/cf"
)

// authorization is what a client asks a user for.
type authorization struct {
	client *cf.Client
	query  url.Values
	to     string // where the user goes next: one of the client's URIs
}

// authorize is GET /oauth/authorize: with a token, for `cf ssh`; else in a
// browser.
func (u *UAA) authorize(r *http.Request) (int, any, error) {
	q := r.URL.Query()
	if r.Header.Get("Authorization") != "" || q.Get("client_id") == SSHClient {
		return u.authorizeSSH(r)
	}
	a, err := u.authorization(r, q)
	if err != nil {
		return 0, nil, err
	}
	if fault := a.check(); fault != "" {
		return a.deny(fault)
	}
	user := u.session(r)
	if user == nil {
		if q.Get("prompt") == "none" {
			return a.deny("login_required")
		}
		return http.StatusFound, redirect{to: "/login?" + url.Values{"next": {"/oauth/authorize?" + q.Encode()}}.Encode()}, nil
	}
	scopes, err := u.scopeOf(r.Context(), user, a.client)
	if err != nil {
		return 0, nil, err
	}
	if scopes, err = narrow(scopes, strings.Fields(q.Get("scope"))); err != nil {
		return a.deny("invalid_scope")
	}
	if a.approved(scopes) {
		return u.allow(a, user, scopes)
	}
	if q.Get("prompt") == "none" {
		return a.deny("interaction_required")
	}
	return form(r, http.StatusOK, page{name: "approve", Title: "Allow access?", User: user.Username, Client: a.name(), Scopes: scopes, To: host(a.to), Next: q.Encode()})
}

// approved reports whether the user need not be asked.
func (a *authorization) approved(scopes []string) bool {
	auto := a.client.AutoApprove
	return slices.Contains(auto, "true") || len(auto) > 0 && len(lacking(auto, slices.Clone(scopes))) == 0
}

// decide is POST /oauth/authorize: the user's answer to the client's request.
func (u *UAA) decide(r *http.Request) (int, any, error) {
	if err := checkForm(r); err != nil {
		return 0, nil, err
	}
	q, err := url.ParseQuery(r.PostForm.Get("next"))
	if err != nil {
		return 0, nil, refuse(http.StatusBadRequest, "invalid_request", "The form could not be read")
	}
	a, err := u.authorization(r, q)
	if err != nil {
		return 0, nil, err
	}
	user := u.session(r)
	if user == nil {
		return http.StatusSeeOther, redirect{to: "/login?" + url.Values{"next": {"/oauth/authorize?" + q.Encode()}}.Encode()}, nil
	}
	if fault := a.check(); fault != "" {
		return a.deny(fault)
	}
	scopes, err := u.scopeOf(r.Context(), user, a.client)
	if err != nil {
		return 0, nil, err
	}
	if scopes, err = narrow(scopes, strings.Fields(q.Get("scope"))); err != nil {
		return a.deny("invalid_scope")
	}
	if r.PostForm.Get("user_oauth_approval") != "true" {
		return a.deny("access_denied")
	}
	return u.allow(a, user, scopes)
}

// authorization parses an authorization request. If the client or its URI is
// wrong it does not redirect.
func (u *UAA) authorization(r *http.Request, q url.Values) (*authorization, error) {
	c, err := u.client(r.Context(), q.Get("client_id"))
	if store.IsNotFound(err) || err == nil && !slices.Contains(c.GrantTypes, grantCode) {
		return nil, refuse(http.StatusUnauthorized, "invalid_client", "No client with requested id: %s", q.Get("client_id"))
	}
	if err != nil {
		return nil, err
	}
	to := q.Get("redirect_uri")
	if to == "" && len(c.RedirectURIs) == 1 {
		to = c.RedirectURIs[0]
	}
	if !slices.Contains(c.RedirectURIs, to) {
		return nil, refuse(http.StatusBadRequest, "invalid_request", "Invalid redirect %s did not match one of the registered values", to)
	}
	return &authorization{client: c, query: q, to: to}, nil
}

// check says what is wrong with a request, in OAuth's words. A public client must
// prove by PKCE that it is who asked.
func (a *authorization) check() string {
	challenge, method := a.query.Get("code_challenge"), a.query.Get("code_challenge_method")
	switch {
	case a.query.Get("response_type") != "code":
		return "unsupported_response_type"
	case challenge == "" && (method != "" || a.client.SecretHash == ""), challenge != "" && method != "S256":
		return "invalid_request"
	}
	return ""
}

func (a *authorization) name() string {
	if a.client.Name != "" {
		return a.client.Name
	}
	return a.client.GUID
}

func (a *authorization) deny(fault string) (int, any, error) {
	return a.answer(url.Values{"error": {fault}})
}

// answer sends the browser back to the client.
func (a *authorization) answer(say url.Values) (int, any, error) {
	if state := a.query.Get("state"); state != "" {
		say.Set("state", state)
	}
	to, err := url.Parse(a.to)
	if err != nil {
		return 0, nil, err
	}
	q := to.Query()
	for name := range say {
		q.Set(name, say.Get(name))
	}
	to.RawQuery = q.Encode()
	return http.StatusSeeOther, redirect{to: to.String()}, nil
}

func (u *UAA) allow(a *authorization, user *cf.User, scopes []string) (int, any, error) {
	g := grantTo(user, codeLife)
	g.client, g.scopes = a.client.GUID, scopes
	g.redirectURI, g.challenge, g.nonce = a.query.Get("redirect_uri"), a.query.Get("code_challenge"), a.query.Get("nonce")
	return a.answer(url.Values{"code": {u.codes.grant(g)}})
}

// redeemCode gives the tokens for a code. A code that is shown wrongly is void
// too.
func (u *UAA) redeemCode(req *request) (int, any, error) {
	bad := refuse(http.StatusBadRequest, "invalid_grant", "Invalid authorization code")
	g, ok := u.codes.redeem(req.PostForm.Get("code"))
	if !ok || g.client != req.client.GUID || g.redirectURI != req.PostForm.Get("redirect_uri") || !g.proven(req.PostForm.Get("code_verifier")) {
		return 0, nil, bad
	}
	user, err := u.grantee(req.Context(), g)
	if err != nil {
		return 0, nil, bad
	}
	req.nonce = g.nonce
	return u.issue(req, user, g.scopes)
}

// proven reports whether a verifier is the one of the code's challenge, as RFC
// 7636 has it; a verifier without a challenge is a downgrade.
func (g *grantedCode) proven(verifier string) bool {
	if g.challenge == "" {
		return verifier == ""
	}
	sum := sha256.Sum256([]byte(verifier))
	return subtle.ConstantTimeCompare([]byte(base64.RawURLEncoding.EncodeToString(sum[:])), []byte(g.challenge)) == 1
}

// authorizeSSH gives who has a token a code for `cf ssh`, whose client reads it
// from the answer and follows nothing.
func (u *UAA) authorizeSSH(r *http.Request) (int, any, error) {
	id, err := u.bearer(r)
	if err != nil {
		return 0, nil, err
	}
	q := r.URL.Query()
	switch {
	case q.Get("client_id") != SSHClient:
		return 0, nil, refuse(http.StatusUnauthorized, "invalid_client", "No client with requested id: %s", q.Get("client_id"))
	case q.Get("response_type") != "code":
		return 0, nil, refuse(http.StatusBadRequest, "unsupported_response_type", "Unsupported response types: [%s]", q.Get("response_type"))
	case id.UserGUID == "":
		return 0, nil, refuse(http.StatusForbidden, "access_denied", "A client cannot be given a code: log in as a user")
	}
	user, err := u.user(r.Context(), id.UserGUID)
	if err != nil {
		return 0, nil, err
	}
	g := grantTo(user, codeLife)
	g.Identity, g.client = id, SSHClient
	return http.StatusFound, redirect{to: "/redirect/cf?code=" + u.codes.grant(g)}, nil
}

func host(uri string) string {
	u, err := url.Parse(uri)
	if err != nil || u.Host == "" {
		return uri
	}
	return u.Host
}
