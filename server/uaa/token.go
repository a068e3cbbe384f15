package uaa

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"cupola/runtime/guid"
	"cupola/store/cf"
)

// claims are the claims of UAA's tokens. A token with user_name must have
// user_id and origin too, or the CLI panics.
type claims struct {
	jwt.RegisteredClaims
	Scope     []string `json:"scope"`
	ClientID  string   `json:"client_id"`
	CID       string   `json:"cid"`
	AZP       string   `json:"azp"`
	Grant     string   `json:"grant_type"`
	UserID    string   `json:"user_id,omitempty"`
	Origin    string   `json:"origin,omitempty"`
	UserName  string   `json:"user_name,omitempty"`
	Email     string   `json:"email,omitempty"`
	RevSig    string   `json:"rev_sig"`
	ZID       string   `json:"zid"`
	Revocable bool     `json:"revocable"`         // so that `cf logout` revokes it
	Refresh   bool     `json:"refresh,omitempty"` // no access token: good for a refresh alone
}

// idClaims are the claims of an ID token, which is of no use but to the client.
type idClaims struct {
	jwt.RegisteredClaims
	AZP      string `json:"azp"`
	Origin   string `json:"origin"`
	UserName string `json:"user_name"`
	Email    string `json:"email"`
	Nonce    string `json:"nonce,omitempty"`
	ZID      string `json:"zid"`
}

// request describes the tokens to issue.
type request struct {
	*http.Request
	client *cf.Client
	grant  string
	nonce  string
}

// token is POST /oauth/token.
func (u *UAA) token(r *http.Request) (int, any, error) {
	if err := r.ParseForm(); err != nil {
		return 0, nil, refuse(http.StatusBadRequest, "invalid_request", "The form could not be read")
	}
	client, err := u.authenticate(r)
	if err != nil {
		return 0, nil, err
	}
	req := &request{Request: r, client: client, grant: r.PostForm.Get("grant_type")}
	switch req.grant {
	case "":
		return 0, nil, refuse(http.StatusBadRequest, "invalid_request", "Missing grant type")
	case grantPassword, grantRefresh, grantCode, grantClient:
	default:
		return 0, nil, refuse(http.StatusBadRequest, "unsupported_grant_type", "Unsupported grant type: %s", req.grant)
	}
	if !slices.Contains(client.GrantTypes, req.grant) {
		return 0, nil, refuse(http.StatusUnauthorized, "invalid_client", "Unauthorized grant type: %s", req.grant)
	}
	return u.grant(req)
}

func (u *UAA) grant(req *request) (int, any, error) {
	form := req.PostForm
	wanted := strings.Fields(form.Get("scope"))
	switch req.grant {
	case grantClient:
		return u.clientToken(req, wanted)
	case grantRefresh:
		return u.refresh(req, wanted)
	case grantCode:
		return u.redeemCode(req)
	}
	var user *cf.User
	var err error
	if form.Has("passcode") {
		user, err = u.byPasscode(req.Context(), form.Get("passcode"))
	} else if err = checkHint(req.Form.Get("login_hint")); err == nil {
		user, err = u.byPassword(req.Request, form.Get("username"), form.Get("password"))
	}
	if err != nil {
		return 0, nil, err
	}
	return u.issue(req, user, wanted)
}

// refresh gives new tokens for a refresh token of the same client, with no
// more scopes than that has.
func (u *UAA) refresh(req *request, wanted []string) (int, any, error) {
	void := refuse(http.StatusUnauthorized, "invalid_token", "The token expired, was revoked, or the token ID is incorrect.")
	c, err := u.Keys.parse(req.PostForm.Get("refresh_token"))
	if err != nil || !c.Refresh || c.ClientID != req.client.GUID {
		return 0, nil, void
	}
	user, err := u.holder(req.Context(), c)
	if err != nil {
		return 0, nil, void
	}
	if isCLI(req.client) { // whose tokens always have all that the user may
		return u.issue(req, user, wanted)
	}
	if len(wanted) == 0 {
		wanted = c.Scope
	} else if slices.ContainsFunc(wanted, func(s string) bool { return !slices.Contains(c.Scope, s) }) {
		return 0, nil, refuse(http.StatusBadRequest, "invalid_scope", "Invalid scope: the refresh token has less")
	}
	return u.issue(req, user, wanted)
}

// clientToken is a client's own token.
func (u *UAA) clientToken(req *request, wanted []string) (int, any, error) {
	scopes, err := narrow(req.client.Authorities, wanted)
	if err != nil {
		return 0, nil, err
	}
	c := newClaims(req, scopes, life(req.client.AccessSeconds, accessLife))
	c.Subject = req.client.GUID
	var user *cf.User
	if req.client.GUID == adminClient {
		if user, err = u.named(req.Context(), "admin"); err != nil {
			return 0, nil, err
		}
	}
	c.RevSig = signature(user, req.client)
	return u.answer(c, nil, nil)
}

// narrow returns the requested ones of the available scopes; all if none are requested.
func narrow(have, wanted []string) ([]string, error) {
	if len(wanted) == 0 {
		return have, nil
	}
	both := slices.DeleteFunc(slices.Clone(have), func(s string) bool { return !slices.Contains(wanted, s) })
	if len(both) == 0 {
		return nil, refuse(http.StatusBadRequest, "invalid_scope", "Invalid scope (empty) - this user is not allowed any of the requested scopes: %s", strings.Join(wanted, " "))
	}
	return both, nil
}

// isCLI reports whether a client is the CLI of Cloud Foundry or of BOSH.
func isCLI(c *cf.Client) bool { return c.GUID == cliClient || c.GUID == boshClient }

// userScope is what a user's token through a client can have, where groups are nested so.
func userScope(user *cf.User, client *cf.Client, n nesting) []string {
	may := client.Scopes
	if isCLI(client) || client.GUID == consoleClient {
		may = knownScopes()
	}
	return slices.DeleteFunc(slices.Concat(userScopes, n.around(user.Scopes)), func(s string) bool { return !slices.Contains(may, s) })
}

func life(seconds int, otherwise time.Duration) time.Duration {
	if seconds == 0 {
		return otherwise
	}
	return time.Duration(seconds) * time.Second
}

// issue answers with the tokens of a user that the client may have.
func (u *UAA) issue(req *request, user *cf.User, wanted []string) (int, any, error) {
	scopes, err := u.scopeOf(req.Context(), user, req.client)
	if err != nil {
		return 0, nil, err
	}
	if scopes, err = narrow(scopes, wanted); err != nil {
		return 0, nil, err
	}
	access := newClaims(req, scopes, life(req.client.AccessSeconds, accessLife))
	access.ofUser(user, req.client)
	var refresh *claims
	if slices.Contains(req.client.GrantTypes, grantRefresh) {
		refresh = newClaims(req, scopes, life(req.client.RefreshSeconds, refreshLife))
		refresh.ofUser(user, req.client)
		refresh.Refresh = true
	}
	var id *idClaims
	if req.grant == grantCode && slices.Contains(scopes, "openid") {
		id = &idClaims{RegisteredClaims: access.RegisteredClaims, AZP: access.AZP, Origin: user.Origin, UserName: user.Username, Email: user.Email, Nonce: req.nonce, ZID: access.ZID}
		id.Audience = []string{req.client.GUID}
	}
	return u.answer(access, refresh, id)
}

func newClaims(req *request, scopes []string, life time.Duration) *claims {
	now := time.Now()
	client := req.client.GUID
	return &claims{Scope: scopes, ClientID: client, CID: client, AZP: client, Grant: req.grant, ZID: "uaa", Revocable: true,
		RegisteredClaims: jwt.RegisteredClaims{ID: strings.ReplaceAll(guid.New(), "-", ""), Issuer: issuer(req.Request),
			Audience: audience(scopes, client), IssuedAt: jwt.NewNumericDate(now), ExpiresAt: jwt.NewNumericDate(now.Add(life))}}
}

// audience are the client and the resources that scopes are of: what stands
// before the last dot, as UAA has it.
func audience(scopes []string, client string) []string {
	all := []string{client}
	for _, s := range scopes {
		if i := strings.LastIndex(s, "."); i > 0 {
			s = s[:i]
		}
		if !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	return all
}

func issuer(r *http.Request) string { return base(r) + "/oauth/token" }

func (c *claims) ofUser(user *cf.User, client *cf.Client) {
	c.Subject, c.UserID, c.Origin, c.UserName, c.Email = user.GUID, user.GUID, user.Origin, user.Username, user.Email
	c.RevSig = signature(user, client)
}

// signature changes with the user's password, the client's secret and either's
// salt: the tokens of older ones are void. Either may be nil.
func signature(user *cf.User, client *cf.Client) string {
	text := ""
	if user != nil {
		text = user.GUID + user.PasswordHash + user.TokenSalt
	}
	if client != nil {
		text += client.SecretHash + client.TokenSalt
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:4])
}

// newSalt voids all tokens of who gets it.
func newSalt() string { return rand.Text() }

func (u *UAA) answer(access, refresh *claims, id *idClaims) (int, any, error) {
	text, err := u.Keys.sign(access)
	if err != nil {
		return 0, nil, err
	}
	// The CLI takes a token_type of other than lower case for one to refresh.
	body := doc{"access_token": text, "token_type": "bearer", "expires_in": int(time.Until(access.ExpiresAt.Time).Seconds()),
		"scope": strings.Join(access.Scope, " "), "jti": access.ID}
	if refresh != nil {
		if body["refresh_token"], err = u.Keys.sign(refresh); err != nil {
			return 0, nil, err
		}
	}
	if id != nil {
		if body["id_token"], err = u.Keys.sign(id); err != nil {
			return 0, nil, err
		}
	}
	return http.StatusOK, body, nil
}
