package uaa

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"cupola/store"
	"cupola/store/cf"
)

// checkToken returns the claims of a token to an authenticated client.
func (u *UAA) checkToken(r *http.Request) (int, any, error) {
	if err := u.resourceServer(r); err != nil {
		return 0, nil, err
	}
	c, err := u.access(r.Context(), r.PostForm.Get("token"))
	if err != nil {
		return 0, nil, refuse(http.StatusBadRequest, "invalid_token", "The token is invalid or has expired")
	}
	if missing := lacking(c.Scope, strings.FieldsFunc(r.PostForm.Get("scopes"), func(r rune) bool { return r == ',' || r == ' ' })); len(missing) > 0 {
		return 0, nil, refuse(http.StatusBadRequest, "invalid_scope", "Some requested scopes are missing: %s", strings.Join(missing, ","))
	}
	return http.StatusOK, c, nil
}

func lacking(have, wanted []string) []string {
	return slices.DeleteFunc(wanted, func(s string) bool { return slices.Contains(have, s) })
}

// introspect is RFC 7662's: of a token that is not good it says nothing else.
func (u *UAA) introspect(r *http.Request) (int, any, error) {
	if err := u.resourceServer(r); err != nil {
		return 0, nil, err
	}
	c, err := u.access(r.Context(), r.PostForm.Get("token"))
	if err != nil {
		return http.StatusOK, doc{"active": false}, nil //nolint:nilerr // that is the answer
	}
	return http.StatusOK, struct {
		*claims
		Active bool `json:"active"`
	}{c, true}, nil
}

func (u *UAA) userInfo(r *http.Request) (int, any, error) {
	id, err := u.bearer(r, "openid")
	if err != nil {
		return 0, nil, err
	}
	user, err := u.user(r.Context(), id.UserGUID)
	if err != nil {
		return 0, nil, noUserWith(id.UserGUID, err)
	}
	return http.StatusOK, doc{"user_id": user.GUID, "sub": user.GUID, "user_name": user.Username, "email": user.Email, "email_verified": true,
		"origin": user.Origin, "given_name": user.GivenName, "family_name": user.FamilyName, "name": strings.TrimSpace(user.GivenName + " " + user.FamilyName)}, nil
}

// maxJTI is how long an ID of a token can be that is kept as revoked.
const maxJTI = 64

// revoke is DELETE /oauth/token/revoke/{id}. The owner of a token, also of a
// refresh token, may revoke it; admins may revoke any.
func (u *UAA) revoke(r *http.Request) (int, any, error) {
	text, err := bearerToken(r)
	if err != nil {
		return 0, nil, err
	}
	c, err := u.Keys.parse(text)
	if err == nil {
		_, err = u.holder(r.Context(), c)
	}
	if err != nil {
		return 0, nil, refuse(http.StatusUnauthorized, "invalid_token", "The token is invalid or has expired")
	}
	jti, end := r.PathValue("id"), time.Now().Add(refreshLife)
	switch {
	case c.ID == jti:
		end = c.ExpiresAt.Time
	case c.Refresh || len(lacking(c.Scope, []string{"uaa.admin"})) > 0 && len(lacking(c.Scope, []string{"tokens.revoke"})) > 0:
		return 0, nil, refuse(http.StatusForbidden, "insufficient_scope", "Insufficient scope for this resource")
	case len(jti) > maxJTI:
		return 0, nil, refuse(http.StatusNotFound, "not_found", "Revocable token not found")
	}
	return http.StatusOK, nil, u.store.Write(r.Context(), func(tx *store.Tx) error { return store.RevokedTokens.Add(tx, jti, end) })
}

// revokeUser voids all tokens of a user, who may do so too.
func (u *UAA) revokeUser(r *http.Request) (int, any, error) {
	id, err := u.bearer(r)
	if err != nil {
		return 0, nil, err
	}
	guid := r.PathValue("id")
	if id.UserGUID != guid {
		if _, err := u.bearer(r, "uaa.admin", "tokens.revoke"); err != nil {
			return 0, nil, err
		}
	}
	return http.StatusOK, nil, u.store.Write(r.Context(), func(tx *store.Tx) error {
		user, err := store.Users.Get(tx, guid)
		if err != nil {
			return notFound(r, err)
		}
		user.TokenSalt = newSalt()
		return store.Users.Update(tx, user)
	})
}

// revokeClient voids all tokens of a registered client, its users' too.
func (u *UAA) revokeClient(r *http.Request) (int, any, error) {
	_, err := clientAdmin{u}.changeClient(r, func(tx *store.Tx, c *cf.Client) error {
		c.TokenSalt = newSalt()
		return store.Clients.Update(tx, c)
	})
	return http.StatusOK, nil, err
}
