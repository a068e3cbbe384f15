package exact

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
)

// TestPaths compares with what http.ServeMux redirects.
func TestPaths(t *testing.T) {
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
	}
	mux := http.NewServeMux()
	for _, pattern := range []string{"/", "/tree/", "GET /both/", "GET /both", "GET /v3/apps/{guid}"} {
		mux.HandleFunc(pattern, status(http.StatusOK))
	}
	paths := Paths(mux, status(http.StatusNotFound))
	for path, known := range map[string]bool{
		"/": true, "/v3": true, "/v3/": true, "/v3/apps/a.b": true, "/v3/apps/...": true, "/v3/apps/%2e%2e/x": true, "/v3/apps/a%2F%2Fb": true,
		"/tree/": true, "/tree/x": true, "/both": true, "/both/": true, "/x/tree": true,
		"//": false, "/v3//apps": false, "//v3/apps": false, "/v3/apps//": false, "/v3/./apps": false, "/v3/../v3": false, "/v3/apps/..": false,
		"/v3/apps/.": false, "/../v3": false, "/tree": false, "/tree//": false,
	} {
		u, err := url.Parse("http://localhost" + path)
		if err != nil {
			t.Fatal(err)
		}
		serve := func(h http.Handler) int {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, &http.Request{Method: http.MethodGet, URL: u, RequestURI: path, Header: http.Header{}})
			return w.Code
		}
		got, redirected := serve(paths), serve(mux) == http.StatusTemporaryRedirect
		if want := map[bool]int{true: http.StatusOK, false: http.StatusNotFound}[known]; got != want || redirected == known {
			t.Errorf("%s: got status %d; want %d; the mux redirects it: %t", path, got, want, redirected)
		}
	}
}
