package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
)

// packLimits bound what a pack may come to: go-git notes every object, and holds
// those that it looks at in memory, whole, each with all that it is a delta of.
type packLimits struct {
	objects uint32
	chain   int64 // bytes of an object and of those
	all     int64 // bytes of all objects together
}

// The largest file that GitHub takes has 100 MB; the history of a buildpack's
// repository has some 50,000 objects.
const (
	maxObjects = 500_000
	maxChain   = 256 << 20
	maxUnpacks = 8 // times the bytes that a pack may have
)

// check reads a pack through and says which of the limits it breaks, holding
// none of its objects.
func (l packLimits) check(ctx context.Context, pack io.ReadSeeker) error {
	s := packfile.NewScanner(pack)
	_, count, err := s.Header()
	if err != nil {
		return err
	}
	if count > l.objects {
		return fmt.Errorf("it has %d objects; at most %d are read", count, l.objects)
	}
	m := measure{packLimits: l, chains: map[int64]int64{}}
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
	packLimits
	chains  map[int64]int64 // by the offset of an object, the bytes of it and of what it is a delta of
	longest int64           // of chains
	named   int64           // bytes of deltas of objects that are named by their hash: of which is not known
	sum     int64
}

var errObject = errors.New("it has an object that takes too much memory")

// next measures one more object.
func (m *measure) next(s *packfile.Scanner) error {
	h, err := s.NextObjectHeader()
	if err != nil {
		return err
	}
	if h.Length < 0 || h.Length > m.chain {
		return errObject
	}
	var begin beginning
	if _, _, err := s.NextObject(&begin); err != nil { // which ends at the length of the header
		return err
	}
	size := h.Length
	if h.Type.IsDelta() {
		becomes, err := begin.becomes()
		if err != nil || becomes > uint64(m.chain) {
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
	case m.longest+m.named > m.chain:
		return errObject
	case m.sum > m.all:
		return fmt.Errorf("it unpacks to more than %d bytes", m.all)
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
