package builtin

import (
	"crypto/subtle"
	"encoding/json"
	"net/http"
	"strings"
)

// Guard lets in who knows the password and speaks a version of the Open Service Broker API that the
// daemon's brokers do.
func Guard(username, password string, next http.Handler) http.Handler {
	same := func(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, given, _ := r.BasicAuth()
		if known := same(user, username); !same(given, password) || !known {
			w.Header().Set("WWW-Authenticate", `Basic realm="cupola"`)
			Write(w, http.StatusUnauthorized, map[string]any{})
			return
		}
		if major, _, _ := strings.Cut(r.Header.Get("X-Broker-API-Version"), "."); major != "2" {
			Write(w, http.StatusPreconditionFailed, map[string]any{"description": "X-Broker-API-Version must be 2.x"})
			return
		}
		next.ServeHTTP(w, r)
	})
}

// Write sends an answer. 0 is the status 200.
func Write(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(max(status, http.StatusOK))
	_ = json.NewEncoder(w).Encode(body) // one who left needs no answer
}
