package pack

import (
	"bufio"
	"encoding/binary"
	"hash/crc32"
	"io"
)

// Stored is a writer of gzip that compresses nothing. What it writes depends on the content alone, while the output of a
// compressor changes with its version: a digest of it stays right. Close ends it, and leaves the writer below open.
type Stored struct {
	w    *bufio.Writer
	part []byte // of the content, for the next block
	crc  uint32
	size uint32 // of the content, modulo 2^32 as in gzip
}

const maxStored = 1<<16 - 1 // the largest block that is stored (RFC 1951, 3.2.4)

// NewStored begins a gzip file.
func NewStored(w io.Writer) *Stored {
	s := &Stored{w: bufio.NewWriterSize(w, 256<<10), part: make([]byte, 0, maxStored)}
	// Deflate, no flags, no time, no level, unknown system (RFC 1952, 2.3).
	_, _ = s.w.Write([]byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255}) // the buffer is empty
	return s
}

// Write writes content.
func (s *Stored) Write(b []byte) (n int, err error) {
	s.crc, s.size = crc32.Update(s.crc, crc32.IEEETable, b), s.size+uint32(len(b)) //nolint:gosec // modulo is meant
	for n < len(b) {
		if len(s.part) == maxStored {
			if err := s.block(0); err != nil {
				return n, err
			}
		}
		more := min(len(b)-n, maxStored-len(s.part))
		s.part = append(s.part, b[n:n+more]...)
		n += more
	}
	return n, nil
}

// block writes the part. last is 1 for the last block.
func (s *Stored) block(last byte) error {
	size := uint16(len(s.part)) //nolint:gosec // it is at most maxStored
	header := []byte{last, 0, 0, 0, 0}
	binary.LittleEndian.PutUint16(header[1:], size)
	binary.LittleEndian.PutUint16(header[3:], ^size)
	if _, err := s.w.Write(header); err != nil {
		return err
	}
	_, err := s.w.Write(s.part)
	s.part = s.part[:0]
	return err
}

// Close writes the end.
func (s *Stored) Close() error {
	if err := s.block(1); err != nil {
		return err
	}
	var end [8]byte
	binary.LittleEndian.PutUint32(end[:], s.crc)
	binary.LittleEndian.PutUint32(end[4:], s.size)
	if _, err := s.w.Write(end[:]); err != nil {
		return err
	}
	return s.w.Flush()
}
