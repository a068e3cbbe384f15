package uaa

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"math/big"
	"net/http"
)

// publicKey is the signing key as a JSON web key.
func (u *UAA) publicKey() doc {
	der, _ := x509.MarshalPKIXPublicKey(&u.key.PublicKey)
	b64 := base64.RawURLEncoding.EncodeToString
	return doc{"kty": "RSA", "use": "sig", "alg": "RS256", "kid": "cupola",
		"value": string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})),
		"n":     b64(u.key.N.Bytes()), "e": b64(big.NewInt(int64(u.key.E)).Bytes())}
}

func (u *UAA) tokenKey(*http.Request) (int, any, error) { return http.StatusOK, u.publicKey(), nil }

func (u *UAA) tokenKeys(*http.Request) (int, any, error) {
	return http.StatusOK, doc{"keys": []doc{u.publicKey()}}, nil
}

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
