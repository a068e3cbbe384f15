package front

import (
	"net/http"
	"slices"
	"strings"

	"cupola/server/refusal"
	"cupola/store/cf"
)

// readOperations are the operations that change nothing: read-only admins may ask for
// them, too.
var readOperations = []string{"stack/list", "stack/inspect", "token-keys/list", "broker/status", "doctor"}

// operators serves what only admins of the API may see or do besides the v3 API: the
// machine, its alerts, and operations of operators.
func (f *Front) operators(mux *http.ServeMux) {
	admins, readers := []string{"cloud_controller.admin"}, []string{"cloud_controller.admin", "cloud_controller.admin_read_only"}
	if f.Machine != nil {
		mux.Handle("/v1/machine", f.byAddress(f.Readers.only(readers, getOnly(f.Machine))))
		mux.Handle("/v1/machine/use", f.byAddress(f.Readers.only(readers, getOnly(http.HandlerFunc(f.Machine.ServeUse)))))
		mux.Handle("/v1/machine/checks", f.byAddress(f.Readers.only(readers, getOnly(http.HandlerFunc(f.Machine.Checks)))))
	}
	if f.Alerts != nil {
		h := f.byAddress(f.Readers.readOrChange(readers, admins, f.Alerts))
		mux.Handle("/v1/alerts", h)
		mux.Handle("/v1/alerts/", h)
	}
	if f.Operations != nil {
		mux.Handle("/v1/admin/", f.byAddress(f.Readers.only(admins, f.Operations)))
		for _, name := range readOperations {
			mux.Handle("/v1/admin/"+name, f.byAddress(f.Readers.only(readers, f.Operations)))
		}
	}
}

// only lets those in whose token has one of the scopes, and refuses others as the
// v3 API does (CC: errors/v2.yml).
func (rs Readers) only(scopes []string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		if token == "" {
			refusal.Write(w, http.StatusUnauthorized, 10002, "CF-NotAuthenticated", "Authentication error")
			return
		}
		id, err := rs.UAA.Verify(r.Context(), token)
		if err != nil || !strings.EqualFold(scheme, "bearer") {
			refusal.Write(w, http.StatusUnauthorized, 1000, "CF-InvalidAuthToken", "Invalid Auth Token")
			return
		}
		if !hasAny(id, scopes) {
			refusal.Write(w, http.StatusForbidden, 10003, "CF-NotAuthorized", "You are not authorized to perform the requested action")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// readOrChange lets in whose token has a scope of the first ones to read, and of the
// second ones to do everything.
func (rs Readers) readOrChange(read, change []string, next http.Handler) http.Handler {
	reads, changes := rs.only(read, next), rs.only(change, next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet || r.Method == http.MethodHead {
			reads.ServeHTTP(w, r)
			return
		}
		changes.ServeHTTP(w, r)
	})
}

func hasAny(id cf.Identity, scopes []string) bool {
	return slices.ContainsFunc(scopes, func(s string) bool { return slices.Contains(id.Scopes, s) })
}

// getOnly knows no other methods.
func getOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			refusal.Write(w, http.StatusNotFound, 10000, "CF-NotFound", "Unknown request")
			return
		}
		next.ServeHTTP(w, r)
	})
}
