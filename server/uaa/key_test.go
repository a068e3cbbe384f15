package uaa

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"cupola/store"
)

func kids(t *testing.T, u *UAA) (ids []string) {
	t.Helper()
	_, body, err := u.Keys.tokenKeys(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range body.(doc)["keys"].([]doc) {
		ids = append(ids, k["kid"].(string))
	}
	return ids
}

func TestRotation(t *testing.T) {
	u, srv := start(t)
	_, before := grant(t, srv, "cf", "", password("admin", "pw"))
	next, err := u.Keys.Rotate(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	if got := kids(t, u); len(got) != 2 || got[0] != next.ID {
		t.Errorf("keys: got %v; want %s first", got, next.ID)
	}
	_, after := grant(t, srv, "cf", "", password("admin", "pw"))
	again, err := New(t.Context(), Config{Store: u.store, Log: slog.New(slog.DiscardHandler)}) // as after a restart
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range []*UAA{u, again} {
		for _, tokens := range []map[string]any{before, after} {
			if _, err := one.Verify(t.Context(), tokens["access_token"].(string)); err != nil {
				t.Error(err)
			}
		}
	}
	req, _ := http.NewRequest("GET", srv.URL+"/token_key", nil)
	if status, body := do(t, req); status != 200 || body["kid"] != next.ID || body["alg"] != "RS256" || body["n"] == "" {
		t.Errorf("got %d %v", status, body)
	}
}

func TestForgottenKeysVerifyNothing(t *testing.T) {
	u, srv := start(t)
	_, before := grant(t, srv, "cf", "", password("admin", "pw"))
	if _, err := u.Keys.Rotate(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	if _, err := u.Verify(t.Context(), before["access_token"].(string)); err == nil {
		t.Error("a token of a forgotten key gives access")
	}
	if got := kids(t, u); len(got) != 1 {
		t.Errorf("got keys %v", got)
	}
}

// A key verifies until the last token that it signed has ended, and is then
// dropped.
func TestRetiredKeysEnd(t *testing.T) {
	u, srv := start(t)
	_, tokens := grant(t, srv, "cf", "", password("admin", "pw"))
	if _, err := u.Keys.Rotate(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	ring := *u.Keys.ring.Load()
	ring[1].Retired = time.Now().Add(-refreshLife - time.Second)
	if _, err := u.Verify(t.Context(), tokens["access_token"].(string)); err == nil {
		t.Error("a token of a key that is over gives access")
	}
	if got := kids(t, u); len(got) != 1 {
		t.Errorf("got keys %v", got)
	}
	err := u.store.Write(t.Context(), func(tx *store.Tx) error { return store.Settings.Set(tx, keysSetting, ring) })
	if err != nil {
		t.Fatal(err)
	}
	if _, err := u.Keys.Rotate(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	if got := len(*u.Keys.ring.Load()); got != 2 {
		t.Errorf("%d keys are kept; want 2", got)
	}
}

// The one key of an older cupola is taken on, so that its tokens are good.
func TestKeyOfBefore(t *testing.T) {
	s, err := store.Open(store.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	old, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	err = s.Write(context.Background(), func(tx *store.Tx) error {
		return store.Settings.Set(tx, "token-key", x509.MarshalPKCS1PrivateKey(old))
	})
	if err != nil {
		t.Fatal(err)
	}
	u, err := New(t.Context(), Config{Store: s, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if k := u.Keys.ring.Load().find(firstKey, time.Now()); k == nil || !k.private.Equal(old) {
		t.Error("the key is another")
	}
}

func TestForgedTokens(t *testing.T) {
	u, _ := start(t)
	mine, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	good := &claims{ClientID: "admin", RegisteredClaims: jwt.RegisteredClaims{ExpiresAt: jwt.NewNumericDate(time.Now().Add(time.Hour))}}
	ours := u.Keys.List()[0].ID
	public, err := x509.MarshalPKIXPublicKey(&(*u.Keys.ring.Load())[0].private.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		method jwt.SigningMethod
		key    any
		kid    any
	}{
		{"another's key", jwt.SigningMethodRS256, mine, ours},
		{"an unknown key", jwt.SigningMethodRS256, mine, "mine"},
		{"no key", jwt.SigningMethodRS256, mine, nil},
		{"an ID that is no text", jwt.SigningMethodRS256, mine, 7},
		{"the public key as a secret", jwt.SigningMethodHS256, public, ours},
		{"no signature", jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, ours},
	} {
		token := jwt.NewWithClaims(c.method, good)
		token.Header["kid"] = c.kid
		text, err := token.SignedString(c.key)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := u.Keys.parse(text); err == nil {
			t.Errorf("%s: the token was taken", c.name)
		}
	}
}
