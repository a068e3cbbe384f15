package jvm

import "strings"

// Words splits options as a shell does, with its quotes and backslashes, but expands and executes nothing. `$(…)`, `${…}` and
// `…` in backquotes do not end at a space (java-buildpack: TokenizeJavaOpts).
func Words(text string) []string {
	s := &splitter{rest: []rune(text)}
	for len(s.rest) > 0 {
		s.next()
	}
	s.end()
	return s.all
}

// splitter reads options from the left.
type splitter struct {
	rest []rune
	word strings.Builder
	open bool // a word has begun, perhaps an empty one
	all  []string
}

func (s *splitter) take() rune {
	r := s.rest[0]
	s.rest = s.rest[1:]
	return r
}

func (s *splitter) end() {
	if s.open {
		s.all = append(s.all, s.word.String())
	}
	s.word.Reset()
	s.open = false
}

func (s *splitter) next() {
	r := s.take()
	if strings.ContainsRune(" \t\n\r\v\f", r) {
		s.end()
		return
	}
	s.open = true
	switch r {
	case '\'':
		for len(s.rest) > 0 {
			if r = s.take(); r == '\'' {
				return
			}
			s.word.WriteRune(r)
		}
	case '"':
		s.quoted()
	case '\\':
		if len(s.rest) > 0 {
			r = s.take()
		}
		s.word.WriteRune(r)
	case '$':
		s.word.WriteRune(r)
		s.dollar()
	case '`':
		s.word.WriteRune(r)
		s.until('`', '`')
	default:
		s.word.WriteRune(r)
	}
}

// quoted reads to the closing double quote.
func (s *splitter) quoted() {
	for len(s.rest) > 0 {
		r := s.take()
		if r == '"' {
			return
		}
		if r == '\\' && len(s.rest) > 0 && strings.ContainsRune("\"\\$`\n", s.rest[0]) {
			if r = s.take(); r == '\n' {
				continue
			}
		}
		s.word.WriteRune(r)
	}
}

// dollar reads the rest of `$(…)` and `${…}`.
func (s *splitter) dollar() {
	if len(s.rest) == 0 {
		return
	}
	closing := map[rune]rune{'(': ')', '{': '}'}[s.rest[0]]
	if closing == 0 {
		return
	}
	opening := s.take()
	s.word.WriteRune(opening)
	s.until(opening, closing)
}

// until reads to the closing rune that belongs to an opening one already read.
func (s *splitter) until(opening, closing rune) {
	for depth := 1; depth > 0 && len(s.rest) > 0; {
		r := s.take()
		switch r {
		case closing:
			depth--
		case opening:
			depth++
		}
		s.word.WriteRune(r)
	}
}
