package uaa

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"net/http"
	"net/url"
	"strings"

	"cupola/store/cf"
)

// The cookies of browsers. With TLS their names are such that no app of the
// same domain can set them.
const (
	sessionCookie = "cupola-session"
	formCookie    = "cupola-form"
)

func cookieName(r *http.Request, name string) string {
	if r.TLS != nil {
		return "__Host-" + name
	}
	return name
}

// cookie is one that no script reads and no other site's form sends; without a
// value it is taken back.
func cookie(r *http.Request, name, value string) *http.Cookie {
	c := &http.Cookie{Name: cookieName(r, name), Value: value, Path: "/", HttpOnly: true, Secure: r.TLS != nil, SameSite: http.SameSiteLaxMode}
	if value == "" {
		c.MaxAge = -1
	}
	return c
}

func cookieOf(r *http.Request, name string) string {
	c, err := r.Cookie(cookieName(r, name))
	if err != nil {
		return ""
	}
	return c.Value
}

// session is the user who is logged in in the browser, or nil.
func (u *UAA) session(r *http.Request) *cf.User {
	g, ok := u.sessions.lookup(cookieOf(r, sessionCookie))
	if !ok {
		return nil
	}
	user, err := u.grantee(r.Context(), g)
	if err != nil {
		return nil
	}
	return user
}

// form is a page with a form. The form has a secret of the browser's, which
// comes back with it: no other site knows it.
func form(r *http.Request, status int, p page) (int, any, error) {
	if p.Secret = cookieOf(r, formCookie); p.Secret == "" {
		p.Secret = rand.Text()
		p.cookies = append(p.cookies, cookie(r, formCookie, p.Secret))
	}
	return status, p, nil
}

// checkForm reads a form and refuses those that are not from our pages.
func checkForm(r *http.Request) error {
	if err := http.NewCrossOriginProtection().Check(r); err != nil {
		return refuse(http.StatusForbidden, "invalid_request", "The form is of another site")
	}
	if err := r.ParseForm(); err != nil {
		return refuse(http.StatusBadRequest, "invalid_request", "The form could not be read")
	}
	ours := cookieOf(r, formCookie)
	if ours == "" || subtle.ConstantTimeCompare([]byte(ours), []byte(r.PostForm.Get("X-Uaa-Csrf"))) != 1 {
		return refuse(http.StatusForbidden, "invalid_request", "The form is too old, or the browser keeps no cookies: load the page again")
	}
	return nil
}

// next is where a login leads: to one of the pages that ask for it, and
// nowhere else.
func next(text string) string {
	u, err := url.Parse(text)
	if err == nil && u.Scheme == "" && u.Host == "" && u.User == nil && (u.Path == "/passcode" || u.Path == "/oauth/authorize" || u.Path == consoleLogin) {
		return u.Path + "?" + u.Query().Encode()
	}
	return "/login"
}

// wantsPage reports whether the client is a browser.
func wantsPage(r *http.Request) bool {
	return strings.Contains(r.Header.Get("Accept"), "text/html")
}

// loginPage is GET /login: in a browser a page, else what to ask users for.
func (u *UAA) loginPage(r *http.Request) (int, any, error) {
	if !wantsPage(r) {
		return u.login(r)
	}
	to := r.URL.Query().Get("next")
	if user := u.session(r); user != nil {
		if to != "" {
			return http.StatusSeeOther, redirect{to: next(to)}, nil
		}
		return form(r, http.StatusOK, page{name: "home", Title: "Logged in", User: user.Username})
	}
	return form(r, http.StatusOK, page{name: "login", Title: "Log in", Next: to})
}

// logIn is POST /login.do.
func (u *UAA) logIn(r *http.Request) (int, any, error) {
	if err := checkForm(r); err != nil {
		return 0, nil, err
	}
	user, err := u.byPassword(r, r.PostForm.Get("username"), r.PostForm.Get("password"))
	if err != nil {
		f, ok := err.(*fault) //nolint:errorlint // faults are never wrapped
		if !ok {
			return 0, nil, err
		}
		say := "Unable to verify email or password. Please try again."
		if f.Description != "Bad credentials" {
			say = f.Description
		}
		return form(r, http.StatusUnauthorized, page{name: "login", Title: "Log in", Next: r.PostForm.Get("next"), Fault: say})
	}
	u.sessions.redeem(cookieOf(r, sessionCookie))
	to := redirect{to: next(r.PostForm.Get("next"))}
	to.cookies = append(to.cookies, cookie(r, sessionCookie, u.sessions.grant(grantTo(user, sessionLife))))
	return http.StatusSeeOther, to, nil
}

// logOut is POST /logout.do.
func (u *UAA) logOut(r *http.Request) (int, any, error) {
	if err := checkForm(r); err != nil {
		return 0, nil, err
	}
	u.sessions.redeem(cookieOf(r, sessionCookie))
	return http.StatusSeeOther, redirect{to: "/login", cookies: []*http.Cookie{cookie(r, sessionCookie, "")}}, nil
}

// passcode is GET /passcode: a code for `cf login --sso`, for who is logged in.
func (u *UAA) passcode(r *http.Request) (int, any, error) {
	user := u.session(r)
	if user == nil {
		return http.StatusFound, redirect{to: "/login?next=/passcode"}, nil
	}
	return form(r, http.StatusOK, page{name: "passcode", Title: "Temporary Authentication Code", User: user.Username, Code: u.passcodes.grant(grantTo(user, codeLife))})
}

// byPasscode is the user whom a passcode was given to.
func (u *UAA) byPasscode(ctx context.Context, code string) (*cf.User, error) {
	g, ok := u.passcodes.redeem(code)
	if ok {
		if user, err := u.grantee(ctx, g); err == nil {
			return user, nil
		}
	}
	return nil, refuse(http.StatusUnauthorized, "unauthorized", "Invalid passcode")
}
