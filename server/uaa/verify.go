package uaa

import (
	"context"
	"crypto/subtle"
	"net/http"
	"slices"
	"strings"

	"golang.org/x/crypto/bcrypt"

	"cupola/store"
	"cupola/store/cf"
)

// noUser is the hash of an unknown password. Attempts for users that do not exist are
// compared with it, so that they take as long as others.
var noUser = []byte("$2a$10$WqdgkrNZpF6jw9Ql4mjSiOi/krXwXx2C5vIfltIpBFhryP8qpkyOy")

func (u *UAA) byPassword(r *http.Request, name, password string) (*cf.User, error) {
	if len(name) > maxUsername { // no user has it, so the lockout does not count it
		return nil, refuse(http.StatusUnauthorized, "unauthorized", "Bad credentials")
	}
	user, err := u.named(r.Context(), name)
	if err != nil && !store.IsNotFound(err) {
		return nil, err
	}
	stored := noUser
	if user != nil && user.PasswordHash != "" {
		stored = []byte(user.PasswordHash)
	}
	same, err := u.guard(r, name, stored, []byte(password))
	if err != nil {
		return nil, err
	}
	if !same || user == nil {
		return nil, refuse(http.StatusUnauthorized, "unauthorized", "Bad credentials")
	}
	return user, nil
}

// isPassword reports whether a password is the user's. It counts no failures: the
// caller has proved to be the user or an admin.
func (u *UAA) isPassword(r *http.Request, user *cf.User, password string) (bool, error) {
	slot, err := u.acquire(r, user.Username)
	if err != nil {
		return false, err
	}
	defer slot.Release()
	return bcrypt.CompareHashAndPassword([]byte(user.PasswordHash), []byte(password)) == nil, nil
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
		user, err = userNamed(tx, name)
		return err
	})
	return user, err
}

func userNamed(tx *store.Tx, name string) (*cf.User, error) {
	return store.Users.First(tx, store.Query{Where: map[string][]string{"usernames": {name}, "origins": {Origin}}})
}

// errVoid says that a token is good no longer.
var errVoid = refuse(http.StatusUnauthorized, "invalid_token", "The token was revoked")

// holder is the user by whose password a token was got; nil for a client's,
// but for the client admin's, who is the user admin. A token is void when it
// was revoked, when its user or client is gone or has another password.
func (u *UAA) holder(ctx context.Context, c *claims) (user *cf.User, err error) {
	err = u.store.Read(ctx, func(tx *store.Tx) error {
		user, _, err = holderOf(tx, c)
		return err
	})
	return user, err
}

// holderOf is holder, with the client.
func holderOf(tx *store.Tx, c *claims) (user *cf.User, client *cf.Client, err error) {
	revoked, err := store.RevokedTokens.Has(tx, c.ID)
	if err != nil {
		return nil, nil, err
	}
	if client, err = findClient(tx, c.ClientID); err != nil { // an ID token has none
		return nil, nil, err
	}
	switch {
	case c.UserID != "":
		user, err = store.Users.Get(tx, c.UserID)
	case c.ClientID == adminClient:
		user, err = userNamed(tx, "admin")
	}
	if err != nil {
		return nil, nil, err
	}
	if revoked || subtle.ConstantTimeCompare([]byte(signature(user, client)), []byte(c.RevSig)) != 1 {
		return nil, nil, errVoid
	}
	return user, client, nil
}

// Verify returns the identity of an access token.
func (u *UAA) Verify(ctx context.Context, token string) (cf.Identity, error) {
	a, err := u.Access(ctx, token)
	return a.Identity, err
}

// Access is an access token that was good when it was read.
type Access struct {
	cf.Identity
	claims *claims
}

// Access reads an access token.
func (u *UAA) Access(ctx context.Context, token string) (Access, error) {
	c, err := u.access(ctx, token)
	if err != nil {
		return Access{}, err
	}
	return Access{cf.Identity{UserGUID: c.UserID, Username: c.UserName, ClientID: c.ClientID, Scopes: c.Scope}, c}, nil
}

// Now returns the identity with the scopes that the user, or the client, still has.
// It does not look at when the token ends: a stream outlives it, as in Loggregator.
// ok is false for a token that was revoked, or whose user or client is gone.
func (a Access) Now(tx *store.Tx) (id cf.Identity, ok bool, err error) {
	user, client, err := holderOf(tx, a.claims)
	if err == errVoid || store.IsNotFound(err) { //nolint:errorlint // faults are never wrapped
		return cf.Identity{}, false, nil
	}
	if err != nil {
		return cf.Identity{}, false, err
	}
	have := client.Authorities
	if a.UserGUID != "" {
		n, err := nestingOf(tx)
		if err != nil {
			return cf.Identity{}, false, err
		}
		have = userScope(user, client, n)
	}
	id = a.Identity
	id.Scopes = slices.DeleteFunc(slices.Clone(id.Scopes), func(s string) bool { return !slices.Contains(have, s) })
	return id, true, nil
}

// access reads an access token that is good.
func (u *UAA) access(ctx context.Context, token string) (*claims, error) {
	c, err := u.Keys.parse(token)
	if err == nil && c.Refresh {
		err = refuse(http.StatusUnauthorized, "invalid_token", "a refresh token gives no access")
	}
	if err == nil {
		_, err = u.holder(ctx, c)
	}
	return c, err
}

// bearerToken is the token of a request.
func bearerToken(r *http.Request) (string, error) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "bearer") {
		return "", refuse(http.StatusUnauthorized, "unauthorized", "Full authentication is required to access this resource")
	}
	return token, nil
}

// bearer is the identity of a request, if it has one of the scopes; without
// any, every identity will do.
func (u *UAA) bearer(r *http.Request, scopes ...string) (cf.Identity, error) {
	token, err := bearerToken(r)
	if err != nil {
		return cf.Identity{}, err
	}
	id, err := u.Verify(r.Context(), token)
	if err != nil {
		return id, refuse(http.StatusUnauthorized, "invalid_token", "The token is invalid or has expired")
	}
	if len(scopes) > 0 && !slices.ContainsFunc(scopes, func(s string) bool { return slices.Contains(id.Scopes, s) }) {
		return id, refuse(http.StatusForbidden, "insufficient_scope", "Insufficient scope for this resource")
	}
	return id, nil
}
