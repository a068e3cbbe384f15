package builtin

import (
	"crypto/subtle"
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
			reply(w, http.StatusUnauthorized, Object{})
			return
		}
		if major, _, _ := strings.Cut(r.Header.Get("X-Broker-API-Version"), "."); major != "2" {
			reply(w, http.StatusPreconditionFailed, Object{"description": "X-Broker-API-Version must be 2.x"})
			return
		}
		next.ServeHTTP(w, r)
	})
}
