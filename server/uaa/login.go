package uaa

import "net/http"

type doc = map[string]any

// login tells what to ask a user for. Without it, `cf login` gives up.
func (u *UAA) login(r *http.Request) (int, any, error) {
	base := "http://" + r.Host
	if r.TLS != nil {
		base = "https://" + r.Host
	}
	return http.StatusOK, doc{
		"app":            doc{"version": "77.0.0"},
		"links":          doc{"uaa": base, "login": base, "passwd": "", "register": ""},
		"zone_name":      "uaa",
		"entityID":       base,
		"commit_id":      "cupola",
		"idpDefinitions": doc{},
		"prompts":        doc{"username": []string{"text", "Email"}, "password": []string{"password", "Password"}},
		"timestamp":      "",
	}, nil
}
