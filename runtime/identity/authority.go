package identity

import (
	"path/filepath"
	"time"

	"cupola/runtime/authority"
)

// Authority issues certificates.
type Authority struct {
	ca   *authority.Authority
	life time.Duration
	keys *keys
}

// Open reads the authority that lies in dir, and makes it where there is none.
// What it issues is good for life.
func Open(dir string, life time.Duration) (*Authority, error) {
	ca, err := authority.Open(authority.Config{CertFile: filepath.Join(dir, "ca.crt"), KeyFile: filepath.Join(dir, "ca.key"), Name: "cupola instance identity"})
	if err != nil {
		return nil, err
	}
	return &Authority{ca: ca, life: life, keys: newKeys()}, nil
}

// Certificate is what trusts instances, as PEM: the authority's, and earlier
// ones of it that have not ended.
func (a *Authority) Certificate() []byte { return a.ca.Trust() }
