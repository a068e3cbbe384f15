package director

import (
	"errors"
	"fmt"
	"sync"

	"cupola/server/bosh/agent"
	"cupola/store"
)

// specs keeps what was read of specs, which never change.
type specs struct {
	mu    sync.Mutex
	known map[string]*agent.Spec // by digest
}

// get reads a spec; nil for the digest "".
func (s *specs) get(tx *store.Tx, digest string) (*agent.Spec, error) {
	if digest == "" {
		return nil, nil
	}
	s.mu.Lock()
	spec := s.known[digest]
	s.mu.Unlock()
	if spec != nil {
		return spec, nil
	}
	row, err := store.BOSHSpecs.Get(tx, digest)
	if err == nil {
		var read agent.Spec
		if read, err = agent.Decode(row.Text); err == nil {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.known[digest] = &read
			return &read, nil
		}
	}
	if store.IsPassing(err) {
		return nil, err
	}
	return nil, broken{fmt.Errorf("what it is made of cannot be read: %w", err)}
}

// broken is an error that a retry cannot fix: a row that cannot be read.
type broken struct{ error }

func (b broken) Unwrap() error { return b.error }

func isBroken(err error) bool { return errors.As(err, new(broken)) }

// retain forgets all but these.
func (s *specs) retain(digests map[string]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for d := range s.known {
		if !digests[d] {
			delete(s.known, d)
		}
	}
}
