package uaa

import (
	"context"
	"net/http"
	"time"

	"cupola/store"
	"cupola/store/cf"
)

// consoleLogin is the page of the web console that a login leads back to.
const consoleLogin = "/console/login"

// Login is a user, as long as the password is that of the login.
type Login struct {
	UserGUID  string
	Signature string // changes with the password
}

// LoggedIn returns who is logged in in the browser, on the UAA's own pages.
func (u *UAA) LoggedIn(r *http.Request) (Login, bool) {
	user := u.session(r)
	if user == nil {
		return Login{}, false
	}
	return Login{UserGUID: user.GUID, Signature: signature(user, nil)}, true
}

// LogOut ends the browser's login on the UAA's pages.
func (u *UAA) LogOut(w http.ResponseWriter, r *http.Request) {
	u.sessions.redeem(cookieOf(r, sessionCookie))
	http.SetCookie(w, cookie(r, sessionCookie, ""))
}

// LoginOf returns the login of a user without a password, for a caller whom root
// has authorized. The error is a cf.ResourceNotFound where there is no such user.
func (u *UAA) LoginOf(ctx context.Context, username string) (Login, error) {
	user, err := u.named(ctx, username)
	if err != nil {
		return Login{}, err
	}
	return Login{UserGUID: user.GUID, Signature: signature(user, nil)}, nil
}

// ConsoleToken returns an access token with all scopes of a user, and when it
// ends. ok is false when the login is void: the user is gone, or has another
// password.
func (u *UAA) ConsoleToken(r *http.Request, l Login) (token string, ends time.Time, ok bool, err error) {
	user, err := u.user(r.Context(), l.UserGUID)
	if store.IsNotFound(err) || err == nil && signature(user, nil) != l.Signature {
		return "", time.Time{}, false, nil
	}
	if err != nil {
		return "", time.Time{}, false, err
	}
	client := builtin(consoleClient)
	scopes, err := u.scopeOf(r.Context(), user, client)
	if err != nil {
		return "", time.Time{}, false, err
	}
	c := newClaims(&request{Request: r, client: client, grant: grantPassword}, scopes, accessLife)
	c.ofUser(user, client)
	token, err = u.Keys.sign(c)
	return token, c.ExpiresAt.Time, err == nil, err
}

// IdentityOf returns who a login is of, with all scopes of now; ok is false when it
// is void.
func IdentityOf(tx *store.Tx, l Login) (id cf.Identity, ok bool, err error) {
	user, err := store.Users.Get(tx, l.UserGUID)
	if store.IsNotFound(err) || err == nil && signature(user, nil) != l.Signature {
		return id, false, nil
	}
	if err != nil {
		return id, false, err
	}
	n, err := nestingOf(tx)
	return cf.Identity{UserGUID: user.GUID, Username: user.Username, ClientID: consoleClient, Scopes: userScope(user, builtin(consoleClient), n)}, err == nil, err
}
