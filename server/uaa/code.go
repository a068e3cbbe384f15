package uaa

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"sync"
	"time"

	"crypto/rand"

	"cupola/store/cf"
)

// The lifetimes of codes and of browser sessions are UAA's. A user who
// requests more than codesOfUser codes loses the oldest.
const (
	codeLife    = 5 * time.Minute
	sessionLife = 30 * time.Minute
	codesOfUser = 16
)

// codes are secrets that wait to be shown again: authorization codes,
// passcodes, sessions. They are in memory alone, under their hashes: a restart
// of the daemon voids them.
type codes struct {
	mu      sync.Mutex
	waiting map[string]grantedCode
}

func newCodes() codes { return codes{waiting: map[string]grantedCode{}} }

// grantedCode is what a code stands for.
type grantedCode struct {
	cf.Identity
	client    string
	signature string // of the user's password
	expires   time.Time

	// Of authorization codes alone: what the token's request must match.
	redirectURI string // as the request had it; "" when it had none
	challenge   string // PKCE's, S256; "" when there was none
	scopes      []string
	nonce       string
}

// grantTo is a grant to a user that ends after a life.
func grantTo(user *cf.User, life time.Duration) grantedCode {
	return grantedCode{Identity: cf.Identity{UserGUID: user.GUID, Username: user.Username}, signature: signature(user, nil), expires: time.Now().Add(life)}
}

func codeKey(code string) string {
	sum := sha256.Sum256([]byte(code))
	return hex.EncodeToString(sum[:])
}

// grant makes a code.
func (c *codes) grant(g grantedCode) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var own []string
	for key, other := range c.waiting {
		switch {
		case time.Now().After(other.expires):
			delete(c.waiting, key)
		case other.UserGUID == g.UserGUID:
			own = append(own, key)
		}
	}
	slices.SortFunc(own, func(a, b string) int { return c.waiting[a].expires.Compare(c.waiting[b].expires) })
	for len(own) >= codesOfUser {
		delete(c.waiting, own[0])
		own = own[1:]
	}
	code := rand.Text()
	c.waiting[codeKey(code)] = g
	return code
}

// lookup gives a code's grant, if it has not ended.
func (c *codes) lookup(code string) (grantedCode, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	g, ok := c.waiting[codeKey(code)]
	return g, ok && time.Now().Before(g.expires)
}

// redeem gives a code's grant, once.
func (c *codes) redeem(code string) (grantedCode, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	g, ok := c.waiting[codeKey(code)]
	delete(c.waiting, codeKey(code))
	return g, ok && time.Now().Before(g.expires)
}

// errBadCode says all that who guesses codes may know.
var errBadCode = errors.New("the authorization code is wrong, was used or has expired")

// Redeem returns whom a code of client was issued to. A code is valid once,
// for five minutes, and void when its user is deleted or changes the password.
func (u *UAA) Redeem(ctx context.Context, client, code string) (cf.Identity, error) {
	g, ok := u.codes.redeem(code)
	if !ok || g.client != client {
		return cf.Identity{}, errBadCode
	}
	if _, err := u.grantee(ctx, g); err != nil {
		return cf.Identity{}, errBadCode
	}
	return g.Identity, nil
}

// grantee is the user of a grant, as long as it is the one it was made to.
func (u *UAA) grantee(ctx context.Context, g grantedCode) (*cf.User, error) {
	user, err := u.user(ctx, g.UserGUID)
	if err == nil && signature(user, nil) != g.signature {
		err = errVoid
	}
	return user, err
}
