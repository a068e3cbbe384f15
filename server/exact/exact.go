// Package exact keeps the handlers of APIs from redirects.
package exact

import (
	"net/http"
	"path"
	"strings"

	"cupola/runtime/pattern"
)

// Paths passes requests on to mux, but for those that it would redirect to another path:
// with empty segments or dots, or without the slash at the end of a tree's root. unknown answers
// these. A redirect has a page of HTML, which no client of an API reads.
func Paths(mux *http.ServeMux, unknown http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p := r.URL.EscapedPath(); path.IsAbs(p) && !unclean().MatchString(p) && !isRoot(mux, r, p) {
			mux.ServeHTTP(w, r)
			return
		}
		unknown.ServeHTTP(w, r)
	})
}

// unclean matches paths with empty segments or dots.
var unclean = pattern.Lazy(`//|/\.\.?(/|$)`)

// isRoot reports whether a path is the root of a tree, without its slash.
func isRoot(mux *http.ServeMux, r *http.Request, p string) bool {
	_, pattern := mux.Handler(r)
	_, tree, _ := strings.Cut(pattern, "/")
	return strings.TrimPrefix(p, "/")+"/" == tree
}
