package router

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"time"
)

// signatureTime is how long a route service may take to send a request on
// (gorouter).
const signatureTime = 60 * time.Second

// seal signs what is sent to route services. Its key lasts as long as the
// router: no request that it signed outlives it.
type seal struct{ aead cipher.AEAD }

func newSeal() *seal {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(err) // 32 bytes are a key
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		panic(err) // AES has the block size of GCM
	}
	return &seal{aead}
}

// sign gives the values of X-Cf-Proxy-Signature, which seals the time and the
// URL, and of X-Cf-Proxy-Metadata, the nonce.
func (s *seal) sign(url string, now time.Time) (signature, metadata string) {
	nonce := make([]byte, s.aead.NonceSize())
	_, _ = rand.Read(nonce) // never fails
	at := binary.BigEndian.AppendUint64(nil, uint64(now.UnixNano()))
	sealed := s.aead.Seal(nil, nonce, at, []byte(url))
	return base64.URLEncoding.EncodeToString(sealed), base64.URLEncoding.EncodeToString(nonce)
}

// open checks values that sign gave for a URL.
func (s *seal) open(signature, metadata, url string, now time.Time) error {
	sealed, err := base64.URLEncoding.DecodeString(signature)
	if err != nil {
		return errors.New("the signature is not base64")
	}
	nonce, err := base64.URLEncoding.DecodeString(metadata)
	if err != nil || len(nonce) != s.aead.NonceSize() {
		return errors.New("the metadata is not a nonce")
	}
	at, err := s.aead.Open(nil, nonce, sealed, []byte(url))
	if err != nil {
		return errors.New("the signature is not ours, or of another URL")
	}
	age := now.Sub(time.Unix(0, int64(binary.BigEndian.Uint64(at))))
	if age > signatureTime {
		return errors.New("the signature has expired")
	}
	return nil
}
