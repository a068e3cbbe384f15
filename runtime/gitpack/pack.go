// Package gitpack checks a pack of a git repository before go-git reads it, and
// opens repositories. The daemon receives packs from those who push, the download
// of buildpacks from servers; neither is trusted.
package gitpack

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/transport"
	"github.com/go-git/go-git/v5/plumbing/transport/server"
	"github.com/go-git/go-git/v5/storage/filesystem"
)

// Limits bound what a pack may come to: go-git notes every object, and holds
// those that it looks at in memory, whole, each with all that it is a delta of.
type Limits struct {
	Objects uint32
	Chain   int64 // bytes of an object and of those that it is a delta of
	All     int64 // bytes of all objects together
}

// The largest file that GitHub takes has 100 MB; the history of a buildpack's
// repository has some 50,000 objects.
const (
	MaxObjects = 500_000
	MaxChain   = 256 << 20
	MaxUnpacks = 8 // times the bytes that a pack may have
)

// Open opens the repository in a directory that is empty or has been opened before.
// go-git takes a directory with a file config, which may be empty, for a bare repository.
func Open(dir string) (*filesystem.Storage, error) {
	f, err := os.OpenFile(filepath.Join(dir, "config"), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	s, err := server.DefaultLoader.Load(&transport.Endpoint{Path: dir})
	if err != nil {
		return nil, err
	}
	return s.(*filesystem.Storage), nil
}

// Check reads a pack through and says which of the limits it breaks, holding
// none of its objects.
func (l Limits) Check(ctx context.Context, pack io.ReadSeeker) error {
	s := packfile.NewScanner(pack)
	_, count, err := s.Header()
	if err != nil {
		return err
	}
	if count > l.Objects {
		return fmt.Errorf("it has %d objects; at most %d are read", count, l.Objects)
	}
	m := measure{Limits: l, chains: map[int64]int64{}}
	for range count {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := m.next(s); err != nil {
			return err
		}
	}
	return nil
}

// measure is what is known of the objects so far.
type measure struct {
	Limits
	chains  map[int64]int64 // by the offset of an object, the bytes of it and of what it is a delta of
	longest int64           // of chains
	named   int64           // bytes of deltas of objects that are named by their hash: of which is not known
	sum     int64
}

// errObject says that go-git would need too much memory for an object.
var errObject = errors.New("it has an object that takes too much memory")

// next measures one more object.
func (m *measure) next(s *packfile.Scanner) error {
	h, err := s.NextObjectHeader()
	if err != nil {
		return err
	}
	if h.Length < 0 || h.Length > m.Chain {
		return errObject
	}
	var begin beginning
	if _, _, err := s.NextObject(&begin); err != nil { // which ends at the length of the header
		return err
	}
	size := h.Length
	if h.Type.IsDelta() {
		becomes, err := begin.becomes()
		if err != nil || becomes > uint64(m.Chain) {
			return errObject
		}
		size += int64(becomes)
	}
	chain := size
	switch h.Type {
	case plumbing.OFSDeltaObject:
		chain += m.chains[h.OffsetReference]
	case plumbing.REFDeltaObject:
		m.named += size
	}
	m.chains[h.Offset] = chain
	m.longest = max(m.longest, chain)
	m.sum += size
	switch {
	case m.longest+m.named > m.Chain:
		return errObject
	case m.sum > m.All:
		return fmt.Errorf("it unpacks to more than %d bytes", m.All)
	}
	return nil
}

// beginning keeps the first bytes of what is written.
type beginning struct{ b []byte }

func (b *beginning) Write(p []byte) (int, error) {
	b.b = append(b.b, p[:min(len(p), 2*binary.MaxVarintLen64-len(b.b))]...)
	return len(p), nil
}

// becomes is how large the object is that a delta makes: its second number.
func (b *beginning) becomes() (uint64, error) {
	_, n := binary.Uvarint(b.b)
	if n <= 0 {
		return 0, packfile.ErrInvalidDelta
	}
	size, n := binary.Uvarint(b.b[n:])
	if n <= 0 {
		return 0, packfile.ErrInvalidDelta
	}
	return size, nil
}
