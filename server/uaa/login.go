package uaa

import (
	"encoding/json"
	"net/http"
	"net/url"
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

// hintedOrigin is the origin that a login_hint names, like {"origin":"ldap"}. A hint in
// another form is none (UaaLoginHint.parseRequestParameter).
func hintedOrigin(hint string) (origin string, ok bool) {
	if text, err := url.QueryUnescape(hint); err == nil {
		hint = text
	}
	var fields map[string]*string
	if err := json.Unmarshal([]byte(hint), &fields); err != nil || fields == nil {
		return "", false
	}
	value, named := fields["origin"]
	if len(fields) > 1 || len(fields) == 1 && !named {
		return "", false
	}
	if value != nil {
		origin = *value
	}
	return origin, true
}

// checkHint refuses a login_hint whose origin has no users here
// (PasswordGrantAuthenticationManager.authenticate).
func checkHint(hint string) error {
	if origin, ok := hintedOrigin(hint); ok && origin != Origin {
		return refuse(http.StatusUnauthorized, "unauthorized", "The origin provided in the login_hint does not match an active Identity Provider, that supports password grant.")
	}
	return nil
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
		"scopes_supported":                      knownScopes(),
		"claims_supported":                      []string{"sub", "user_name", "origin", "iss", "aud", "exp", "iat", "azp", "client_id", "email", "scope"},
	}, nil
}
