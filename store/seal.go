package store

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"cupola/runtime/durable"
)

// sealer encrypts what must not be readable in the database file.
type sealer struct {
	aead cipher.AEAD
	mac  []byte // key of fingerprints
}

// openSealer reads the key, or makes one where there is none.
func openSealer(file string) (*sealer, error) {
	key, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		key, err = newKey(file)
	}
	if err != nil {
		return nil, err
	}
	if len(key) != 32 {
		return nil, fmt.Errorf("%s: a key of 32 bytes is needed, it has %d", file, len(key))
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCM(block)
	return &sealer{aead, sum(key, []byte("fingerprint"))}, err
}

// newKey makes a key, which is on the disk before anything is sealed with it.
func newKey(file string) ([]byte, error) {
	key := make([]byte, 32)
	rand.Read(key)
	return key, durable.Write(file, key, 0o600)
}

func sum(key, text []byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write(text)
	return mac.Sum(nil)
}

// Fingerprint names a secret: the same for the same text, and of no use to who
// would guess the text, for it takes the store's key. It is 16 hex digits.
func (tx *Tx) Fingerprint(secret []byte) string {
	return hex.EncodeToString(sum(tx.seal.mac, secret)[:8])
}

func (s *sealer) seal(plain []byte) []byte {
	nonce := make([]byte, s.aead.NonceSize(), s.aead.NonceSize()+len(plain)+s.aead.Overhead())
	rand.Read(nonce)
	return s.aead.Seal(nonce, nonce, plain, nil)
}

func (s *sealer) open(sealed []byte) ([]byte, error) {
	n := s.aead.NonceSize()
	if len(sealed) < n {
		return nil, errors.New("sealed value is too short")
	}
	return s.aead.Open(nil, sealed[:n], sealed[n:], nil)
}

// unseal is open for a column.
func (s *sealer) unseal(sealed []byte) ([]byte, error) {
	plain, err := s.open(sealed)
	if err != nil {
		return nil, fmt.Errorf("open a sealed column (is store.key the one this database was made with?): %w", err)
	}
	return plain, nil
}
