package uaa

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"
)

// SSHClient is the client that `cf ssh` gets its codes for.
const SSHClient = "ssh-proxy"

// The life of an authorization code is UAA's. A user who asks for more codes
// than that loses the oldest.
const (
	codeLife    = 5 * time.Minute
	codesOfUser = 16
)

// codes are the authorization codes that wait to be redeemed. They are in
// memory alone: a restart of the daemon voids them.
type codes struct {
	mu      sync.Mutex
	waiting map[string]grantedCode
}

func newCodes() codes { return codes{waiting: map[string]grantedCode{}} }

type grantedCode struct {
	Identity
	client    string
	signature string // of the user's password
	expires   time.Time
}

// authorize is GET /oauth/authorize, for the one client whose users are not
// asked whether they agree.
func (u *UAA) authorize(r *http.Request) (int, any, error) {
	id, err := u.bearer(r, "")
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
	code := u.codes.grant(grantedCode{Identity: id, client: SSHClient, signature: signature(user), expires: time.Now().Add(codeLife)})
	// Clients read the code and follow nothing.
	return http.StatusFound, redirect("/redirect/cf?code=" + code), nil
}

// redirect is an answer without a body.
type redirect string

func (c *codes) grant(g grantedCode) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var own []string
	for text, other := range c.waiting {
		switch {
		case time.Now().After(other.expires):
			delete(c.waiting, text)
		case other.UserGUID == g.UserGUID:
			own = append(own, text)
		}
	}
	slices.SortFunc(own, func(a, b string) int { return c.waiting[a].expires.Compare(c.waiting[b].expires) })
	for len(own) >= codesOfUser {
		delete(c.waiting, own[0])
		own = own[1:]
	}
	code := rand.Text()
	c.waiting[code] = g
	return code
}

// take gives a code's grant, once.
func (c *codes) take(code string) (grantedCode, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	g, ok := c.waiting[code]
	delete(c.waiting, code)
	return g, ok
}

// errBadCode says all that who guesses codes may know.
var errBadCode = errors.New("the authorization code is wrong, was used or has expired")

// Redeem tells whom a code of client was given to. A code is good once, for
// five minutes, and void when its user is gone or has another password.
func (u *UAA) Redeem(ctx context.Context, client, code string) (Identity, error) {
	g, ok := u.codes.take(code)
	if !ok || g.client != client || time.Now().After(g.expires) {
		return Identity{}, errBadCode
	}
	user, err := u.user(ctx, g.UserGUID)
	if err != nil || signature(user) != g.signature {
		return Identity{}, errBadCode
	}
	return g.Identity, nil
}
