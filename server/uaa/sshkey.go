package uaa

import (
	"context"
	"errors"
	"net/http"
	"time"

	"cupola/store"
	"cupola/store/cf"
)

// errBadKey says all that a stranger may know.
var errBadKey = errors.New("the key is not registered, or its user is locked")

// keyUsed is how exact the time of a key's last use is.
const keyUsed = time.Minute

// KeyOwner returns whose an SSH key is. A user whom wrong passwords have locked out
// does not log in by key either.
func (u *UAA) KeyOwner(ctx context.Context, fingerprint string) (cf.Identity, error) {
	user, _, err := u.keyOwner(ctx, fingerprint)
	if err != nil {
		return cf.Identity{}, err
	}
	return cf.Identity{UserGUID: user.GUID, Username: user.Username}, nil
}

func (u *UAA) keyOwner(ctx context.Context, fingerprint string) (user *cf.User, key *cf.SSHKey, err error) {
	var failed failures
	err = u.store.Read(ctx, func(tx *store.Tx) error {
		if key, err = store.SSHKeys.First(tx, store.Query{Where: map[string][]string{"fingerprints": {fingerprint}}}); err != nil {
			return err
		}
		if user, err = store.Users.Get(tx, key.UserGUID); err != nil {
			return err
		}
		failed.n, failed.last, err = store.LoginFailures.Count(tx, user.Username, tx.Now.Add(-lockoutWindow))
		return err
	})
	if store.IsNotFound(err) || err == nil && (user.Origin != Origin || failed.lock(time.Now())) {
		err = errBadKey
	}
	return user, key, err
}

// KeyToken issues an access token to a user who has proved to have the key, and notes
// that the key was used. r says by which host the API is known.
func (u *UAA) KeyToken(r *http.Request, fingerprint string) (string, error) {
	user, key, err := u.keyOwner(r.Context(), fingerprint)
	if err != nil {
		return "", err
	}
	client := builtin(cliClient)
	scopes, err := u.scopeOf(r.Context(), user, client)
	if err != nil {
		return "", err
	}
	access := newClaims(&request{Request: r, client: client, grant: "ssh_key"}, scopes, life(client.AccessSeconds, accessLife))
	access.ofUser(user, client)
	token, err := u.Keys.sign(access)
	if err != nil || time.Since(key.LastUsedAt) < keyUsed {
		return token, err
	}
	err = u.store.Write(r.Context(), func(tx *store.Tx) error {
		now, err := store.SSHKeys.Get(tx, key.GUID)
		if store.IsNotFound(err) {
			return errBadKey
		}
		if err != nil {
			return err
		}
		now.LastUsedAt = tx.Now
		return store.SSHKeys.Update(tx, now)
	})
	return token, err
}
