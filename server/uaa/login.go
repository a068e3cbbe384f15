package uaa

import (
	"net/http"
	"slices"
)

type doc = map[string]any

// base is scheme and host as the client sees them.
func base(r *http.Request) string {
	if r.TLS != nil {
		return "https://" + r.Host
	}
	return "http://" + r.Host
}

// login returns the prompts for a login. Without it, `cf login` fails.
func (u *UAA) login(r *http.Request) (int, any, error) {
	base := base(r)
	return http.StatusOK, doc{
		"app":            doc{"version": "77.0.0"},
		"links":          doc{"uaa": base, "login": base, "passwd": "", "register": ""},
		"zone_name":      "uaa",
		"entityID":       base,
		"commit_id":      "cupola",
		"idpDefinitions": doc{},
		"prompts": doc{"username": []string{"text", "Email"}, "password": []string{"password", "Password"},
			"passcode": []string{"password", "Temporary Authentication Code ( Get one at " + base + "/passcode )"}},
		"timestamp": "",
	}, nil
}

// discover is OpenID Connect's description of what there is.
func (u *UAA) discover(r *http.Request) (int, any, error) {
	base := base(r)
	return http.StatusOK, doc{
		"issuer": issuer(r), "authorization_endpoint": base + "/oauth/authorize", "token_endpoint": base + "/oauth/token",
		"userinfo_endpoint": base + "/userinfo", "jwks_uri": base + "/token_keys", "introspection_endpoint": base + "/introspect",
		"response_types_supported": []string{"code"}, "subject_types_supported": []string{"public"}, "id_token_signing_alg_values_supported": []string{"RS256"},
		"token_endpoint_auth_methods_supported": []string{"client_secret_basic", "client_secret_post", "none"},
		"grant_types_supported":                 []string{grantCode, grantRefresh, grantClient, grantPassword},
		"code_challenge_methods_supported":      []string{"S256"},
		"scopes_supported":                      slices.Concat(userScopes, AdminScopes, otherScopes),
		"claims_supported":                      []string{"sub", "user_name", "origin", "iss", "aud", "exp", "iat", "azp", "client_id", "email", "scope"},
	}, nil
}
