package uaa

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"
	"golang.org/x/crypto/bcrypt"

	"cupola/store"
	"cupola/store/cf"
)

// claims are the claims of UAA's tokens. A token with user_name must have
// user_id and origin too, or the CLI panics.
type claims struct {
	jwt.RegisteredClaims
	Scope    []string `json:"scope"`
	ClientID string   `json:"client_id"`
	CID      string   `json:"cid"`
	AZP      string   `json:"azp"`
	Grant    string   `json:"grant_type"`
	UserID   string   `json:"user_id,omitempty"`
	Origin   string   `json:"origin,omitempty"`
	UserName string   `json:"user_name,omitempty"`
	Email    string   `json:"email,omitempty"`
	RevSig   string   `json:"rev_sig"`
	ZID      string   `json:"zid"`
	Refresh  bool     `json:"refresh,omitempty"` // no access token: good for a refresh alone
}

// token is POST /oauth/token.
func (u *UAA) token(r *http.Request) (int, any, error) {
	if err := r.ParseForm(); err != nil {
		return 0, nil, refuse(http.StatusBadRequest, "invalid_request", "The form could not be read")
	}
	client, secret, basic := r.BasicAuth()
	if basic {
		client, _ = url.QueryUnescape(client)
		secret, _ = url.QueryUnescape(secret)
	} else {
		client, secret = r.PostForm.Get("client_id"), r.PostForm.Get("client_secret")
	}
	grant := r.PostForm.Get("grant_type")
	switch grant {
	case "password", "refresh_token":
		if client != "cf" || secret != "" {
			return 0, nil, refuse(http.StatusUnauthorized, "invalid_client", "Bad credentials")
		}
	case "client_credentials":
		return u.clientToken(r, client, secret)
	case "":
		return 0, nil, refuse(http.StatusBadRequest, "invalid_request", "Missing grant type")
	default:
		return 0, nil, refuse(http.StatusBadRequest, "unsupported_grant_type", "Unsupported grant type: %s", grant)
	}
	user, err := u.grantee(r, grant)
	if err != nil {
		return 0, nil, err
	}
	return u.issue(r, user, grant)
}

// grantee is the user that a grant is for.
func (u *UAA) grantee(r *http.Request, grant string) (*cf.User, error) {
	if grant == "password" {
		return u.byPassword(r, r.PostForm.Get("username"), r.PostForm.Get("password"))
	}
	c, err := u.parse(r.PostForm.Get("refresh_token"))
	if err != nil || !c.Refresh {
		return nil, refuse(http.StatusUnauthorized, "invalid_token", "The token expired, was revoked, or the token ID is incorrect.")
	}
	user, err := u.holder(r.Context(), c)
	if err != nil {
		return nil, refuse(http.StatusUnauthorized, "invalid_token", "The token expired, was revoked, or the token ID is incorrect.")
	}
	return user, nil
}

// noUser is compared with when there is no such user, so that an attempt takes
// as long as with one.
var noUser = sync.OnceValue(func() []byte {
	b, _ := bcrypt.GenerateFromPassword([]byte(rand.Text()), bcrypt.DefaultCost)
	return b
})

func (u *UAA) byPassword(r *http.Request, name, password string) (*cf.User, error) {
	if len(name) > maxUsername { // which nobody has, and the lockout need not remember
		return nil, refuse(http.StatusUnauthorized, "unauthorized", "Bad credentials")
	}
	user, err := u.named(r.Context(), name)
	if err != nil && !store.IsNotFound(err) {
		return nil, err
	}
	stored := noUser()
	if user != nil && user.PasswordHash != "" {
		stored = []byte(user.PasswordHash)
	}
	same, err := u.guard(r.Context(), name, stored, []byte(password))
	if err != nil {
		return nil, err
	}
	if !same || user == nil {
		return nil, refuse(http.StatusUnauthorized, "unauthorized", "Bad credentials")
	}
	return user, nil
}

func (u *UAA) user(ctx context.Context, guid string) (user *cf.User, err error) {
	err = u.store.Read(ctx, func(tx *store.Tx) error {
		user, err = store.Users.Get(tx, guid)
		return err
	})
	return user, err
}

func (u *UAA) named(ctx context.Context, name string) (user *cf.User, err error) {
	err = u.store.Read(ctx, func(tx *store.Tx) error {
		user, err = store.Users.First(tx, store.Query{Where: map[string][]string{"usernames": {name}, "origins": {Origin}}})
		return err
	})
	return user, err
}

// holder is the user by whose password a token was got: the client admin's is
// that of the user admin. A token is void when the user is gone or has another
// password.
func (u *UAA) holder(ctx context.Context, c *claims) (user *cf.User, err error) {
	if c.UserID != "" {
		user, err = u.user(ctx, c.UserID)
	} else {
		user, err = u.named(ctx, c.ClientID)
	}
	if err == nil && signature(user) != c.RevSig {
		err = refuse(http.StatusUnauthorized, "invalid_token", "The token was revoked")
	}
	return user, err
}

// clientToken is the grant of the client admin, whose secret is the admin's
// password.
func (u *UAA) clientToken(r *http.Request, client, secret string) (int, any, error) {
	if client != "admin" {
		return 0, nil, refuse(http.StatusUnauthorized, "invalid_client", "Bad credentials")
	}
	user, err := u.byPassword(r, "admin", secret)
	if err != nil {
		return 0, nil, refuse(http.StatusUnauthorized, "invalid_client", "Bad credentials")
	}
	scopes := append([]string{"cloud_controller.read", "cloud_controller.write"}, AdminScopes...)
	c := newClaims(r, scopes, client, "client_credentials", accessLife)
	c.Subject, c.RevSig = client, signature(user)
	return u.answer(c, nil)
}

// issue answers with an access and a refresh token of a user.
func (u *UAA) issue(r *http.Request, user *cf.User, grant string) (int, any, error) {
	scopes := append(slices.Clone(userScopes), user.Scopes...)
	access := newClaims(r, scopes, "cf", grant, accessLife)
	access.ofUser(user)
	refresh := newClaims(r, scopes, "cf", grant, refreshLife)
	refresh.ofUser(user)
	refresh.Refresh = true
	return u.answer(access, refresh)
}

func newClaims(r *http.Request, scopes []string, client, grant string, life time.Duration) *claims {
	now := time.Now()
	return &claims{Scope: scopes, ClientID: client, CID: client, AZP: client, Grant: grant, ZID: "uaa",
		RegisteredClaims: jwt.RegisteredClaims{ID: strings.ReplaceAll(uuid.NewString(), "-", ""), Issuer: "http://" + r.Host + "/oauth/token",
			Audience: []string{"cloud_controller", "cf", "openid", "uaa"}, IssuedAt: jwt.NewNumericDate(now), ExpiresAt: jwt.NewNumericDate(now.Add(life))}}
}

func (c *claims) ofUser(user *cf.User) {
	c.Subject, c.UserID, c.Origin, c.UserName, c.Email = user.GUID, user.GUID, user.Origin, user.Username, user.Email
	c.RevSig = signature(user)
}

// signature changes with the user's password: the tokens of an older one are
// void.
func signature(user *cf.User) string {
	sum := sha256.Sum256([]byte(user.GUID + user.PasswordHash))
	return hex.EncodeToString(sum[:4])
}

func (u *UAA) answer(access, refresh *claims) (int, any, error) {
	text, err := u.sign(access)
	if err != nil {
		return 0, nil, err
	}
	// The CLI takes a token_type of other than lower case for one to refresh.
	body := doc{"access_token": text, "token_type": "bearer", "expires_in": int(time.Until(access.ExpiresAt.Time).Seconds()),
		"scope": strings.Join(access.Scope, " "), "jti": access.ID}
	if refresh != nil {
		if body["refresh_token"], err = u.sign(refresh); err != nil {
			return 0, nil, err
		}
	}
	return http.StatusOK, body, nil
}

func (u *UAA) sign(c *claims) (string, error) {
	k := (*u.keys.Load())[0]
	t := jwt.NewWithClaims(jwt.SigningMethodRS256, c)
	t.Header["kid"] = k.ID
	return t.SignedString(k.private)
}

// parse reads a token that this UAA signed and that has not expired.
func (u *UAA) parse(text string) (*claims, error) {
	c := &claims{}
	_, err := jwt.ParseWithClaims(text, c, u.keyOf, jwt.WithValidMethods([]string{"RS256"}), jwt.WithExpirationRequired())
	return c, err
}

// keyOf is the key that a token says it was signed with.
func (u *UAA) keyOf(t *jwt.Token) (any, error) {
	id, _ := t.Header["kid"].(string)
	k := u.keys.Load().find(id, time.Now())
	if k == nil {
		return nil, errNoKey
	}
	return &k.private.PublicKey, nil
}

// Identity is whom an access token speaks for.
type Identity struct {
	UserGUID string // "" for a client
	Username string
	ClientID string
	Scopes   []string
}

// Verify tells whom an access token speaks for.
func (u *UAA) Verify(ctx context.Context, token string) (Identity, error) {
	c, err := u.parse(token)
	if err == nil && c.Refresh {
		err = refuse(http.StatusUnauthorized, "invalid_token", "a refresh token gives no access")
	}
	if err == nil {
		_, err = u.holder(ctx, c)
	}
	return Identity{UserGUID: c.UserID, Username: c.UserName, ClientID: c.ClientID, Scopes: c.Scope}, err
}

// bearer is the identity of a request, if it has the scope.
func (u *UAA) bearer(r *http.Request, scope string) (Identity, error) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "bearer") {
		return Identity{}, refuse(http.StatusUnauthorized, "unauthorized", "Full authentication is required to access this resource")
	}
	id, err := u.Verify(r.Context(), token)
	if err != nil {
		return id, refuse(http.StatusUnauthorized, "invalid_token", "The token is invalid or has expired")
	}
	if scope != "" && !slices.Contains(id.Scopes, scope) {
		return id, refuse(http.StatusForbidden, "insufficient_scope", "Insufficient scope for this resource")
	}
	return id, nil
}
