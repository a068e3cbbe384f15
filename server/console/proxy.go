package console

import (
	"net/http"
	"strings"

	"cupola/server/refusal"
	"cupola/store"
)

// apiPaths are what the console may ask for: not the UAA's pages and tokens.
var apiPaths = []string{"/v3", "/jobs", "/calls", "/v2/read", "/api/v1/", "/v1/", "/routing/", "/networking/", "/userinfo", "/Users", "/Groups"}

func isAPIPath(path string) bool {
	if path == "/" {
		return true
	}
	for _, p := range apiPaths {
		if rest, ok := strings.CutPrefix(path, p); ok && (strings.HasSuffix(p, "/") || rest == "" || rest[0] == '/') {
			return true
		}
	}
	return false
}

// proxy answers /console/api/PATH as the API answers PATH to the session's user.
func (c *Console) proxy(api http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c.origin.Check(r) != nil {
			refuseForeign(w)
			return
		}
		s, ok, err := c.session(r)
		if err != nil {
			c.fail(w, r, err)
			return
		}
		var token string
		if ok {
			token, ok, err = c.token(r, s)
		}
		switch path := strings.TrimPrefix(r.URL.Path, "/console/api"); {
		case err != nil:
			c.fail(w, r, err)
		case !ok:
			refuseStranger(w)
		case !isAPIPath(path):
			refusal.Write(w, http.StatusNotFound, 10000, "CF-NotFound", "Unknown request")
		case path == "/v2/read":
			c.stream(w, r, s, func(r *http.Request) { api.ServeHTTP(w, ask(r, token)) })
		default:
			api.ServeHTTP(w, ask(r, token))
		}
	})
}

// ask makes the request of the API of one of the console.
func ask(r *http.Request, token string) *http.Request {
	out := r.Clone(r.Context())
	out.URL.Path = strings.TrimPrefix(r.URL.Path, "/console/api")
	out.URL.RawPath = strings.TrimPrefix(r.URL.RawPath, "/console/api")
	out.RequestURI = out.URL.RequestURI()
	out.Header.Del("Cookie")
	out.Header.Set("Authorization", "bearer "+token)
	return out
}

// stream serves a response that lasts, until its session ends.
func (c *Console) stream(w http.ResponseWriter, r *http.Request, s session, serve func(*http.Request)) {
	one, ctx, ok := c.live.begin(r.Context(), s.key, s.login.UserGUID)
	if !ok {
		refuseMany(w)
		return
	}
	defer c.live.finish(s.key, one)
	defer c.feed.hold()()
	c.whileAllowed(ctx, one, func(tx *store.Tx) (bool, error) {
		_, _, ok, err := c.identify(tx, s)
		return ok, err
	})
	serve(r.WithContext(ctx))
}

func refuseMany(w http.ResponseWriter) {
	refusal.Write(w, http.StatusTooManyRequests, 10013, "CF-RateLimitExceeded", "You have too many streams and terminals open: close some of them")
}
