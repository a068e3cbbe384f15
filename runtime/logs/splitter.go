package logs

import (
	"bytes"
	"unicode/utf8"
)

// maxLine is the most bytes of one line; longer ones are cut (Diego).
const maxLine = 61440

// splitter cuts a stream into lines. As with Diego both \n and \r end one,
// empty lines are left out, and a line too long is cut between characters.
type splitter struct {
	max     int          // bytes of a line; at least utf8.UTFMax
	line    func([]byte) // the slice is valid during the call
	partial []byte
}

func (s *splitter) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		end := lineEnd(p)
		if end < 0 {
			s.add(p)
			break
		}
		s.add(p[:end])
		s.flush()
		p = p[end+1:]
	}
	return n, nil
}

// lineEnd is the index of the first \n or \r of p, or -1.
func lineEnd(p []byte) int {
	end := bytes.IndexByte(p, '\n')
	head := p
	if end >= 0 {
		head = p[:end]
	}
	if cr := bytes.IndexByte(head, '\r'); cr >= 0 {
		return cr
	}
	return end
}

// add appends text without an end of line, letting go of full lines.
func (s *splitter) add(text []byte) {
	for len(s.partial)+len(text) >= s.max {
		room := s.max - len(s.partial)
		s.partial = append(s.partial, text[:room]...)
		text = text[room:]
		cut := wholeRunes(s.partial)
		rest := append([]byte(nil), s.partial[cut:]...)
		s.partial = s.partial[:cut]
		s.flush()
		s.partial = append(s.partial, rest...)
	}
	s.partial = append(s.partial, text...)
}

// wholeRunes is the length of p without a character cut off at its end. Bytes
// that are no UTF-8 at all stay.
func wholeRunes(p []byte) int {
	for back := 1; back < utf8.UTFMax && back < len(p); back++ {
		i := len(p) - back
		if utf8.RuneStart(p[i]) {
			if !utf8.FullRune(p[i:]) {
				return i
			}
			break
		}
	}
	return len(p)
}

// flush hands over what there is of a line, if anything.
func (s *splitter) flush() {
	if len(s.partial) > 0 {
		s.line(s.partial)
		s.partial = s.partial[:0]
		if cap(s.partial) > readBytes {
			s.partial = nil // one long line must not cost memory for ever
		}
	}
}
