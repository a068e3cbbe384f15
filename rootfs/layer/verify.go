package layer

import (
	"context"
	"io"
	"sync"
	"time"
)

// trustTime is for how long a kept layer that was read and found sound is not read again. A disk that loses bits does not tell.
const trustTime = time.Hour

// proofs say when kept layers were found sound.
type proofs struct {
	mu  sync.Mutex
	all map[string]*proof // by digest
}

// proof is of one layer. Who holds mu reads its files.
type proof struct {
	mu sync.Mutex
	at time.Time // zero: never
}

func (p *proofs) of(digest string) *proof {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all == nil {
		p.all = map[string]*proof{}
	}
	if p.all[digest] == nil {
		p.all[digest] = &proof{}
	}
	return p.all[digest]
}

func (p *proofs) forget(digest string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.all, digest)
}

func (p *proof) found(at time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.at = at
}

// verify reads a kept layer, unless it was found sound just now.
func (s *Cache) verify(ctx context.Context, dir, digest string) error {
	p := s.proofs.of(digest)
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.at.IsZero() && time.Since(p.at) < trustTime {
		return nil
	}
	if err := writeArchive(ctx, dir, digest, io.Discard); err != nil {
		return err
	}
	p.at = time.Now()
	return nil
}
