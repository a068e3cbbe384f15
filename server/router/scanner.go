package router

import (
	"bytes"
)

// scanner follows the framing of the HTTP/1 requests on a connection, to find
// their heads. Where the framing is broken it gives up: net/http closes such
// connections itself.
type scanner struct {
	state  scanState
	head   []byte // what came of a head so far, if it came in pieces
	left   uint64 // bytes of a body or chunk
	size   uint64 // of the chunk whose length is being read
	digits int
	line   int // bytes in the current line of a trailer
}

type scanState int

const (
	inHead scanState = iota
	inBody
	inChunkSize
	inChunkExtension // what follows a size, to the end of its line
	inChunk
	inTrailer
	gaveUp
)

// maxScannedHead is more than the server reads of a head before it refuses it.
const maxScannedHead = maxHeaderBytes + 16<<10

// feed scans the next bytes. It returns false if a header among them is
// rejected, with the number of bytes that may be forwarded.
func (s *scanner) feed(p []byte) (int, bool) {
	for i := 0; i < len(p); {
		switch s.state {
		case gaveUp:
			return len(p), true
		case inHead:
			n, ok := s.feedHead(p[i:])
			i += n
			if !ok {
				return i - 1, false // short of the byte that ends the head
			}
		case inBody, inChunk:
			i += s.skip(len(p) - i)
		default:
			s.feedByte(p[i])
			i++
		}
	}
	return len(p), true
}

// skip passes over up to n bytes of a body or chunk.
func (s *scanner) skip(n int) int {
	if uint64(n) < s.left {
		s.left -= uint64(n)
		return n
	}
	n = int(s.left)
	s.left = 0
	if s.state == inBody {
		s.state = inHead
	} else {
		s.startChunk()
	}
	return n
}

func (s *scanner) startChunk() { s.state, s.size, s.digits = inChunkSize, 0, 0 }

// feedHead scans bytes of a header, at most to its end. It returns false if
// the complete header is rejected.
func (s *scanner) feedHead(p []byte) (int, bool) {
	if len(s.head) == 0 {
		if blank := len(p) - len(bytes.TrimLeft(p, "\r\n")); blank > 0 {
			return blank, true // net/http skips empty lines before a request, or refuses them
		}
		if end := headEnd(p, 0); end > 0 {
			return end, s.endHead(p[:end])
		}
	}
	before := len(s.head)
	s.head = append(s.head, p...)
	end := headEnd(s.head, max(0, before-2))
	if end > 0 {
		head := s.head[:end]
		s.head = nil
		return end - before, s.endHead(head)
	}
	if len(s.head) > maxScannedHead {
		s.state, s.head = gaveUp, nil
	}
	return len(p), true
}

// headEnd is the length of the head that p begins with, searched for from
// index from; 0 while it has no end.
func headEnd(p []byte, from int) int {
	for {
		i := bytes.IndexByte(p[from:], '\n')
		if i < 0 {
			return 0
		}
		from += i + 1
		switch rest := p[from:]; {
		case len(rest) >= 1 && rest[0] == '\n':
			return from + 1
		case len(rest) >= 2 && rest[0] == '\r' && rest[1] == '\n':
			return from + 2
		}
	}
}

// endHead decides on a head and what follows it; false refuses it.
func (s *scanner) endHead(head []byte) bool {
	f := frame(head)
	switch {
	case f.refuse:
		s.state = gaveUp
		return false
	case f.http2:
		s.state = gaveUp
	case f.chunked:
		s.startChunk()
	case f.length > 0:
		s.state, s.left = inBody, f.length
	}
	return true
}

// feedByte takes a byte between chunks.
func (s *scanner) feedByte(c byte) {
	switch s.state {
	case inChunkSize:
		s.feedSize(c)
	case inChunkExtension:
		if c == '\n' {
			s.endSize()
		}
	case inTrailer:
		s.feedTrailer(c)
	}
}

func (s *scanner) feedSize(c byte) {
	digit := hexDigit(c)
	switch {
	case digit >= 0 && s.digits < 15: // a size that cannot overflow
		s.size, s.digits = s.size<<4|uint64(digit), s.digits+1
	case s.digits == 0 || digit >= 0:
		s.state = gaveUp
	case c == '\n':
		s.endSize()
	default:
		s.state = inChunkExtension
	}
}

func hexDigit(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c && c <= 'f':
		return int(c-'a') + 10
	case 'A' <= c && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

// endSize is at the end of a chunk's first line.
func (s *scanner) endSize() {
	if s.size == 0 {
		s.state, s.line = inTrailer, 0
		return
	}
	s.state, s.left = inChunk, s.size+2 // and the end of line after it
}

func (s *scanner) feedTrailer(c byte) {
	switch {
	case c == '\n' && s.line == 0:
		s.state = inHead
	case c == '\n':
		s.line = 0
	case c != '\r':
		s.line++
	}
}
