package uaa

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"net/http"
	"sync"
	"time"

	"cupola/store"
)

// maxBasic is how many users' tokens are remembered.
const maxBasic = 1000

// basicTokens remembers the tokens of users that authenticate each request by their
// password, since comparing passwords is slow by design. The zero value is ready.
type basicTokens struct {
	mu   sync.Mutex
	key  []byte // so that what is remembered says nothing of passwords
	have map[[sha256.Size]byte]basicToken
}

type basicToken struct {
	text    string
	expires time.Time
}

// Basic is next for clients that know no tokens: a user's name and password of
// basic authentication become an access token, as that of the CLI. Wrong ones count
// as failed logins. refuse answers where there is no token.
func (u *UAA) Basic(next http.Handler, refuse func(w http.ResponseWriter, status int, why string)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, password, ok := r.BasicAuth()
		if !ok {
			next.ServeHTTP(w, r)
			return
		}
		token, err := u.tokenOf(r, name, password)
		if err != nil {
			f := u.faultOf(r, err)
			refuse(w, f.status, f.Description)
			return
		}
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "bearer "+token)
		next.ServeHTTP(w, r)
	})
}

// tokenOf is an access token of the user with the password.
func (u *UAA) tokenOf(r *http.Request, name, password string) (string, error) {
	key := u.basic.keyOf(name, password)
	if token := u.basic.get(key); token != "" {
		if _, err := u.Verify(r.Context(), token); err == nil { // it is void once the password is another
			return token, nil
		}
	}
	r = r.WithContext(store.As(r.Context(), "uaa"))
	user, err := u.byPassword(r, name, password)
	if err != nil {
		return "", err
	}
	_, body, err := u.issue(&request{Request: r, client: builtin(cliClient), grant: grantPassword}, user, nil)
	if err != nil {
		return "", err
	}
	answer, _ := body.(doc)
	token, _ := answer["access_token"].(string)
	u.basic.put(key, token)
	return token, nil
}

func (b *basicTokens) keyOf(name, password string) (key [sha256.Size]byte) {
	b.mu.Lock()
	if b.key == nil {
		b.key = []byte(rand.Text())
	}
	h := hmac.New(sha256.New, b.key)
	b.mu.Unlock()
	h.Write([]byte(name + "\x00" + password)) // basic authentication has no NUL in names
	h.Sum(key[:0])
	return key
}

func (b *basicTokens) get(key [sha256.Size]byte) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if t := b.have[key]; time.Now().Before(t.expires) {
		return t.text
	}
	return ""
}

// put remembers a token until shortly before it ends.
func (b *basicTokens) put(key [sha256.Size]byte, token string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.have == nil || len(b.have) >= maxBasic {
		b.have = map[[sha256.Size]byte]basicToken{}
	}
	b.have[key] = basicToken{token, time.Now().Add(accessLife - time.Minute)}
}
