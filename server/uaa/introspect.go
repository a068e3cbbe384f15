package uaa

import "net/http"

// checkToken tells the claims of a token, for a client that authenticates.
func (u *UAA) checkToken(r *http.Request) (int, any, error) {
	client, secret, _ := r.BasicAuth()
	if client != "admin" {
		return 0, nil, refuse(http.StatusUnauthorized, "unauthorized", "Bad credentials")
	}
	if _, err := u.byPassword(r, "admin", secret); err != nil {
		return 0, nil, err
	}
	c, err := u.parse(r.PostFormValue("token"))
	if err == nil {
		_, err = u.holder(r.Context(), c)
	}
	if err != nil || c.Refresh {
		return 0, nil, refuse(http.StatusBadRequest, "invalid_token", "The token is invalid or has expired")
	}
	return http.StatusOK, c, nil
}

func (u *UAA) userInfo(r *http.Request) (int, any, error) {
	id, err := u.bearer(r, "openid")
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, doc{"user_id": id.UserGUID, "sub": id.UserGUID, "user_name": id.Username, "email": id.Username}, nil
}

// revoke ends nothing: tokens live for ten minutes, and none says that it is
// revocable, so the CLI does not ask.
func (u *UAA) revoke(*http.Request) (int, any, error) {
	return 0, nil, refuse(http.StatusNotFound, "not_found", "Revocable token not found")
}

func (u *UAA) showClient(r *http.Request) (int, any, error) {
	if _, err := u.bearer(r, "uaa.admin"); err != nil {
		return 0, nil, err
	}
	id := r.PathValue("id")
	if id != "cf" && id != "admin" {
		return 0, nil, refuse(http.StatusNotFound, "invalid_client", "No client with requested id: %s", id)
	}
	return http.StatusOK, doc{"client_id": id}, nil
}
