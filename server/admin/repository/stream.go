package repository

import (
	"context"
	"errors"
	"io"
	"sort"

	"filippo.io/age"
)

// Stream reads the stream of a backup, from wherever it is sought to: only the chunks that are read
// are fetched. Each is what its name says; that they are all, and in their order, only Load checks.
type Stream struct {
	ctx     context.Context
	opener  *opener
	starts  []int64 // of the chunks in the stream
	at      int64
	fetched int // the chunk that content is of; -1: none yet
	content []byte
}

// Stream opens the stream of a backup. Close it.
func (r *Repository) Stream(ctx context.Context, s Snapshot, identities []age.Identity) (*Stream, error) {
	o, err := r.opener(ctx, s, identities)
	if err != nil {
		return nil, err
	}
	t := &Stream{ctx: ctx, opener: o, fetched: -1}
	var at int64
	for _, c := range s.Chunks {
		t.starts = append(t.starts, at)
		at += c.Size
	}
	return t, nil
}

// Close releases memory.
func (t *Stream) Close() { t.opener.unpack.Close() }

// Read reads the rest of one chunk at most.
func (t *Stream) Read(p []byte) (int, error) {
	if t.at >= t.opener.Size {
		return 0, io.EOF
	}
	n := sort.Search(len(t.starts), func(n int) bool { return t.starts[n] > t.at }) - 1
	if n != t.fetched {
		content, err := t.opener.open(t.ctx, t.opener.Chunks[n])
		if err != nil {
			return 0, err
		}
		t.fetched, t.content = n, content
	}
	read := copy(p, t.content[t.at-t.starts[n]:])
	t.at += int64(read)
	return read, nil
}

// Seek sets the place of the next Read.
func (t *Stream) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += t.at
	case io.SeekEnd:
		offset += t.opener.Size
	}
	if offset < 0 {
		return t.at, errors.New("cannot seek to before the beginning of a backup")
	}
	t.at = offset
	return offset, nil
}
