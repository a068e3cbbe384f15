package durable

import (
	"sync"
	"time"
)

// TrustTime is for how long content that was read and found sound is not read
// again. A disk that loses bits changes no time of a file, so nothing is trusted
// for good; and hashing 100 MB takes a tenth of a second or more, so no start of an
// instance waits for it twice.
const TrustTime = time.Hour

// Proofs remembers which stored contents were found sound, by name. I is what
// changes when content is written again. It is safe for concurrent use.
type Proofs[I comparable] struct {
	mu  sync.Mutex
	all map[string]*proof[I]
}

// proof is of one content. Who holds mu reads it.
type proof[I comparable] struct {
	mu sync.Mutex
	id I
	at time.Time // zero: never
}

// Verify calls read, which fails for damaged content, unless the content was found
// sound within TrustTime and identify, which is called first, returns the same as then.
func (p *Proofs[I]) Verify(name string, identify func() (I, error), read func() error) error {
	one := p.of(name)
	one.mu.Lock()
	defer one.mu.Unlock()
	id, err := identify()
	if err != nil {
		return err
	}
	if !one.at.IsZero() && one.id == id && time.Since(one.at) < TrustTime {
		return nil
	}
	if err := read(); err != nil {
		return err
	}
	one.id, one.at = id, time.Now()
	return nil
}

// Found notes that content is sound.
func (p *Proofs[I]) Found(name string, id I) {
	one := p.of(name)
	one.mu.Lock()
	defer one.mu.Unlock()
	one.id, one.at = id, time.Now()
}

// Forget forgets content that is gone.
func (p *Proofs[I]) Forget(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.all, name)
}

func (p *Proofs[I]) of(name string) *proof[I] {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all == nil {
		p.all = map[string]*proof[I]{}
	}
	if p.all[name] == nil {
		p.all[name] = &proof[I]{}
	}
	return p.all[name]
}
