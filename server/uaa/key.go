package uaa

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"math/big"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"cupola/store"
)

// firstKey is the ID of the key of a UAA that had but one.
const firstKey = "cupola"

// errNoKey says that a token was signed with a key that was revoked or is unknown.
var errNoKey = errors.New("no key signs tokens like this one")

// key is a key that signs tokens, or that did.
type key struct {
	ID      string
	Made    time.Time
	Retired time.Time // since when another signs; zero: this one does
	DER     []byte    // PKCS #1
	private *rsa.PrivateKey
}

// Key describes a key that verifies tokens.
type Key struct {
	ID    string
	Made  time.Time
	Until time.Time // what it signed is good no longer than that; zero: it signs
}

// keyring is all keys that verify tokens; the first one signs.
type keyring []*key

// find is the key with the ID, while what it signed can be good.
func (k keyring) find(id string, now time.Time) *key {
	for _, one := range k {
		if one.ID == id && !one.dead(now) {
			return one
		}
	}
	return nil
}

// dead reports whether all that the key signed has ended.
func (k *key) dead(now time.Time) bool {
	return !k.Retired.IsZero() && now.After(k.Retired.Add(refreshLife))
}

const keysSetting = "token-keys"

// Keys are the keys that sign and verify tokens. They are kept in the store.
type Keys struct {
	store    *store.Store
	rotating sync.Mutex // held while the ring is changed
	ring     atomic.Pointer[keyring]
}

// openKeys reads the store's keys and makes one when there is none.
func openKeys(ctx context.Context, s *store.Store) (*Keys, error) {
	k := &Keys{store: s}
	var ring keyring
	err := s.Write(ctx, func(tx *store.Tx) (err error) {
		if ring, err = readKeys(tx); err != nil || len(ring) > 0 {
			return err
		}
		first := &key{ID: firstKey, Made: tx.Now}
		if _, err := store.Settings.Get(tx, "token-key", &first.DER); err != nil { // of an older cupola
			return err
		}
		if first.DER == nil {
			if first, err = newKey(tx.Now); err != nil {
				return err
			}
		}
		ring = keyring{first}
		return store.Settings.Set(tx, keysSetting, ring)
	})
	if err == nil {
		err = ring.parse()
	}
	if err != nil {
		return nil, err
	}
	k.ring.Store(&ring)
	return k, nil
}

func readKeys(tx *store.Tx) (ring keyring, err error) {
	_, err = store.Settings.Get(tx, keysSetting, &ring)
	return ring, err
}

func (k keyring) parse() (err error) {
	for _, one := range k {
		if one.private == nil {
			if one.private, err = x509.ParsePKCS1PrivateKey(one.DER); err != nil {
				return err
			}
		}
	}
	return nil
}

func newKey(now time.Time) (*key, error) {
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, err
	}
	return &key{ID: "key-" + strings.ToLower(rand.Text()[:8]), Made: now, DER: x509.MarshalPKCS1PrivateKey(private), private: private}, nil
}

// Rotate makes a key that signs from now on. What others signed is good until
// its end, or at once no longer: forget is for keys that may be compromised.
func (k *Keys) Rotate(ctx context.Context, forget bool) (Key, error) {
	next, err := newKey(time.Now())
	if err != nil {
		return Key{}, err
	}
	k.rotating.Lock()
	defer k.rotating.Unlock()
	ring := keyring{next}
	err = k.store.Write(ctx, func(tx *store.Tx) error {
		old, err := readKeys(tx)
		if err != nil {
			return err
		}
		for _, one := range old {
			if one.Retired.IsZero() {
				one.Retired = tx.Now
			}
			if !forget && !one.dead(tx.Now) {
				ring = append(ring, one)
			}
		}
		return store.Settings.Set(tx, keysSetting, ring)
	})
	if err != nil {
		return Key{}, err
	}
	if err := ring.parse(); err != nil {
		return Key{}, err
	}
	k.ring.Store(&ring)
	return next.public(), nil
}

// List gives the keys that verify tokens; the first one signs.
func (k *Keys) List() (all []Key) {
	for _, one := range k.live() {
		all = append(all, one.public())
	}
	return all
}

func (k *Keys) live() keyring {
	return slices.DeleteFunc(slices.Clone(*k.ring.Load()), func(one *key) bool { return one.dead(time.Now()) })
}

func (k *Keys) sign(c jwt.Claims) (string, error) {
	first := (*k.ring.Load())[0]
	t := jwt.NewWithClaims(jwt.SigningMethodRS256, c)
	t.Header["kid"] = first.ID
	return t.SignedString(first.private)
}

// parse reads a token that one of the keys signed and that has not expired.
func (k *Keys) parse(text string) (*claims, error) {
	c := &claims{}
	_, err := jwt.ParseWithClaims(text, c, k.named, jwt.WithValidMethods([]string{"RS256"}), jwt.WithExpirationRequired())
	return c, err
}

// named is the key that a token says it was signed with.
func (k *Keys) named(t *jwt.Token) (any, error) {
	id, _ := t.Header["kid"].(string)
	one := k.ring.Load().find(id, time.Now())
	if one == nil {
		return nil, errNoKey
	}
	return &one.private.PublicKey, nil
}

func (k *key) public() Key {
	out := Key{ID: k.ID, Made: k.Made}
	if !k.Retired.IsZero() {
		out.Until = k.Retired.Add(refreshLife)
	}
	return out
}

// jwk is the public key as a JSON web key.
func (k *key) jwk() (doc, error) {
	der, err := x509.MarshalPKIXPublicKey(&k.private.PublicKey)
	b64 := base64.RawURLEncoding.EncodeToString
	return doc{"kty": "RSA", "use": "sig", "alg": "RS256", "kid": k.ID,
		"value": string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})),
		"n":     b64(k.private.N.Bytes()), "e": b64(big.NewInt(int64(k.private.E)).Bytes())}, err
}

func (k *Keys) tokenKey(*http.Request) (int, any, error) {
	body, err := k.live()[0].jwk()
	return http.StatusOK, body, err
}

func (k *Keys) tokenKeys(*http.Request) (int, any, error) {
	var all []doc
	for _, one := range k.live() {
		public, err := one.jwk()
		if err != nil {
			return 0, nil, err
		}
		all = append(all, public)
	}
	return http.StatusOK, doc{"keys": all}, nil
}
