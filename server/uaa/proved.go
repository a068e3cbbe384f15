package uaa

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"sync"
	"time"

	"golang.org/x/crypto/bcrypt"
)

const (
	provedFor = 5 * time.Minute
	maxProved = 1000
)

// proved remembers which passwords were right for which hashes, since scripts and git log in
// again and again, and a comparison takes 50 ms of a processor by design. What it keeps are
// digests with a key that only this process has; a changed password has another hash, of which
// it knows nothing. The zero value is ready.
type proved struct {
	mu    sync.Mutex
	key   []byte
	until map[[sha256.Size]byte]time.Time
}

// compare reports whether a password is that of a bcrypt hash.
func (p *proved) compare(now time.Time, stored, password []byte) bool {
	digest := p.digest(stored, password)
	if p.has(now, digest) {
		return true
	}
	if bcrypt.CompareHashAndPassword(stored, password) != nil {
		return false
	}
	p.add(now, digest)
	return true
}

func (p *proved) digest(stored, password []byte) (digest [sha256.Size]byte) {
	p.mu.Lock()
	if p.key == nil {
		p.key = []byte(rand.Text())
	}
	h := hmac.New(sha256.New, p.key)
	p.mu.Unlock()
	h.Write(stored)
	h.Write([]byte{0}) // which no hash has
	h.Write(password)
	h.Sum(digest[:0])
	return digest
}

func (p *proved) has(now time.Time, digest [sha256.Size]byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return now.Before(p.until[digest])
}

func (p *proved) add(now time.Time, digest [sha256.Size]byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.until == nil || len(p.until) >= maxProved {
		p.until = map[[sha256.Size]byte]time.Time{}
	}
	p.until[digest] = now.Add(provedFor)
}
