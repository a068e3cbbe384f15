package console

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"cupola/server/uaa"
	"cupola/store"
)

// A session ends when nothing was asked for idleLife, and after longestLife.
const (
	idleLife    = 12 * time.Hour
	longestLife = 30 * 24 * time.Hour
	touchEvery  = 5 * time.Minute
)

const cookieName = "cupola-console"

// nameOf is the cookie's name. With TLS it is one that no other host of the domain
// can set.
func nameOf(r *http.Request) string {
	if r.TLS != nil {
		return "__Host-" + cookieName
	}
	return cookieName
}

// cookie holds a session's secret; "" takes it back. No script reads it, and no
// other site's request has it.
func cookie(r *http.Request, secret string) *http.Cookie {
	k := &http.Cookie{Name: nameOf(r), Value: secret, Path: "/", HttpOnly: true, Secure: r.TLS != nil, SameSite: http.SameSiteStrictMode, MaxAge: int(longestLife / time.Second)}
	if secret == "" {
		k.MaxAge = -1
	}
	return k
}

func keyOf(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// session is the session of a request.
type session struct {
	key   string
	login uaa.Login
}

// session returns the request's session, if it has one that is good.
func (c *Console) session(r *http.Request) (s session, ok bool, err error) {
	k, err := r.Cookie(nameOf(r))
	if err != nil || k.Value == "" {
		return s, false, nil
	}
	s.key = keyOf(k.Value)
	var row store.ConsoleSession
	err = c.Store.Read(r.Context(), func(tx *store.Tx) error {
		row, ok, err = store.ConsoleSessions.Get(tx, s.key)
		return err
	})
	if err != nil || !ok || time.Since(row.SeenAt) > idleLife || time.Since(row.CreatedAt) > longestLife {
		return s, false, err
	}
	s.login = uaa.Login{UserGUID: row.UserGUID, Signature: row.Signature}
	if time.Since(row.SeenAt) > touchEvery {
		err = c.Store.Write(store.As(r.Context(), row.UserGUID), func(tx *store.Tx) error { return store.ConsoleSessions.Touch(tx, s.key) })
	}
	return s, true, err
}

// begin starts a session and gives the browser its cookie.
func (c *Console) begin(w http.ResponseWriter, r *http.Request, l uaa.Login) error {
	secret, now := rand.Text()+rand.Text(), time.Now()
	row := store.ConsoleSession{Key: keyOf(secret), UserGUID: l.UserGUID, Signature: l.Signature, CreatedAt: now, SeenAt: now}
	err := c.Store.Write(store.As(r.Context(), l.UserGUID), func(tx *store.Tx) error {
		return store.ConsoleSessions.Add(tx, row, now.Add(-idleLife))
	})
	if err == nil {
		http.SetCookie(w, cookie(r, secret))
	}
	return err
}

// login leads a browser to the UAA's page, and, once a user is logged in there,
// back to where it was.
func (c *Console) login(w http.ResponseWriter, r *http.Request) {
	next := r.URL.Query().Get("next")
	if !ours(next) {
		next = Path
	}
	w.Header().Set("Cache-Control", "no-store")
	if _, ok, err := c.session(r); err == nil && ok {
		http.Redirect(w, r, next, http.StatusSeeOther)
		return
	}
	l, ok := c.UAA.LoggedIn(r)
	if !ok {
		back := "/console/login?" + url.Values{"next": {next}}.Encode()
		http.Redirect(w, r, "/login?"+url.Values{"next": {back}}.Encode(), http.StatusFound)
		return
	}
	if err := c.begin(w, r, l); err != nil {
		c.fail(w, r, err)
		return
	}
	goOn(w, next)
}

// ours reports whether a target is below Path: not another site's.
func ours(target string) bool {
	u, err := url.Parse(target)
	return err == nil && u.Scheme == "" && u.Host == "" && u.User == nil && strings.HasPrefix(u.Path, Path) && !strings.Contains(target, `\`)
}

// goOn leads to a page of the console by a page: the redirects of a navigation that
// another site began, as a link to the console is, would not have the strict cookie.
func goOn(w http.ResponseWriter, next string) {
	w.Header().Set("Refresh", "0; url="+next)
	w.WriteHeader(http.StatusOK)
}

// logOut ends the session, with the login on the UAA's pages.
func (c *Console) logOut(w http.ResponseWriter, r *http.Request) {
	if c.origin.Check(r) != nil {
		refuseForeign(w)
		return
	}
	s, ok, err := c.session(r)
	if err == nil && ok {
		err = c.Store.Write(store.As(r.Context(), s.login.UserGUID), func(tx *store.Tx) error { return store.ConsoleSessions.Remove(tx, s.key) })
	}
	if err != nil {
		c.fail(w, r, err)
		return
	}
	c.tokens.drop(s.key)
	c.live.authorityChanged()
	c.UAA.LogOut(w, r)
	http.SetCookie(w, cookie(r, ""))
	w.WriteHeader(http.StatusNoContent)
}

// openLife is how long the address of `cupola open` is good.
const openLife = time.Minute

// opens are the secrets of `cupola open`: in memory alone, good once.
type opens struct {
	mu      sync.Mutex
	waiting map[string]waitingOpen
}

type waitingOpen struct {
	login uaa.Login
	until time.Time
}

// Invite returns a path of the console that logs one browser in as a user, once
// and within a minute.
func (c *Console) Invite(ctx context.Context, username string) (path string, err error) {
	l, err := c.UAA.LoginOf(ctx, username)
	if err != nil {
		return "", err
	}
	secret := rand.Text() + rand.Text()
	c.opens.mu.Lock()
	defer c.opens.mu.Unlock()
	for key, o := range c.opens.waiting {
		if time.Now().After(o.until) {
			delete(c.opens.waiting, key)
		}
	}
	c.opens.waiting[keyOf(secret)] = waitingOpen{l, time.Now().Add(openLife)}
	return "/console/open?token=" + secret, nil
}

// take gives the login of a secret, once.
func (o *opens) take(secret string) (uaa.Login, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	w, ok := o.waiting[keyOf(secret)]
	delete(o.waiting, keyOf(secret))
	return w.login, ok && time.Now().Before(w.until)
}

// open is what `cupola open` leads a browser to.
func (c *Console) open(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	l, ok := c.opens.take(r.URL.Query().Get("token"))
	if !ok {
		http.Error(w, "This address was used, or is older than a minute. Run 'cupola open' again.", http.StatusUnauthorized)
		return
	}
	if err := c.begin(w, r, l); err != nil {
		c.fail(w, r, err)
		return
	}
	goOn(w, Path)
}

// tokens are the access tokens of sessions, in memory: they are signed once for
// many requests.
type tokens struct {
	mu   sync.Mutex
	held map[string]heldToken
}

type heldToken struct {
	text string
	ends time.Time
}

func (t *tokens) get(key string) (string, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	h, ok := t.held[key]
	return h.text, ok && time.Until(h.ends) > time.Minute
}

func (t *tokens) put(key string, h heldToken) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for other, o := range t.held {
		if time.Now().After(o.ends) {
			delete(t.held, other)
		}
	}
	t.held[key] = h
}

func (t *tokens) drop(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.held, key)
}

// token returns an access token of a session; ok is false when its login is void.
func (c *Console) token(r *http.Request, s session) (token string, ok bool, err error) {
	if text, ok := c.tokens.get(s.key); ok {
		return text, true, nil
	}
	text, ends, ok, err := c.UAA.ConsoleToken(r, s.login)
	if err == nil && ok {
		c.tokens.put(s.key, heldToken{text, ends})
	}
	return text, ok, err
}
