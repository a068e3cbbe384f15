package router

import (
	"net/http"
	"slices"
)

// stickyCookie names the instance that a session belongs to.
const stickyCookie = "__VCAP_ID__"

// stickyInstance is the instance that the request wants to go to: it has a
// session cookie of its app, and the router's beside it.
func stickyInstance(req *http.Request, names []string) string {
	if req.Header["Cookie"] == nil {
		return ""
	}
	for _, name := range names {
		if _, err := req.Cookie(name); err != nil {
			continue
		}
		if c, err := req.Cookie(stickyCookie); err == nil {
			return c.Value
		}
	}
	return ""
}

// stick adds __VCAP_ID__ to the header of an answer that begins a session, or that comes
// from another instance than the session had. Its attributes follow the
// session cookie's (gorouter).
func (x *exchange) stick(h http.Header) {
	e := x.endpoint
	if e.InstanceGUID == "" || x.sticky == "" && h["Set-Cookie"] == nil {
		return
	}
	cookie := http.Cookie{Name: stickyCookie, Value: e.InstanceGUID, Path: x.pool.cookiePath(), HttpOnly: true}
	set := x.sticky != "" && x.sticky != e.InstanceGUID
	session := false
	for _, c := range (&http.Response{Header: h}).Cookies() {
		if c.Name == stickyCookie {
			return // the app's own wish
		}
		if session || !slices.Contains(x.router.config.StickyCookies, c.Name) {
			continue
		}
		session, set = true, true
		cookie.MaxAge = min(c.MaxAge, 0)
		cookie.Secure, cookie.SameSite, cookie.Expires, cookie.Partitioned = c.Secure, c.SameSite, c.Expires, c.Partitioned
	}
	if text := cookie.String(); set && text != "" {
		h.Add("Set-Cookie", text)
	}
}

func (p *pool) cookiePath() string {
	if p.path == "" {
		return "/"
	}
	return p.path
}
