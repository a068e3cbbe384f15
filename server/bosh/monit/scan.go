package monit

import (
	"fmt"
	"strings"
)

// word is a token of a monit file: a word, a text in quotes, or an operator.
type word struct {
	text   string
	quoted bool
	line   int
}

// is reports whether the word is one of some keywords, which are in lower case.
func (w word) is(keywords ...string) bool {
	for _, k := range keywords {
		if !w.quoted && strings.EqualFold(w.text, k) {
			return true
		}
	}
	return false
}

// scan splits a file into words, without comments and without what monit takes for noise.
func scan(text string) (all []word, err error) {
	for line, at := 1, 0; at < len(text); {
		switch c := text[at]; {
		case c == '\n':
			line, at = line+1, at+1
		case isSpace(c), c == ',', c == '=', c == ';':
			at++
		case c == '#':
			at = end(text, at, func(c byte) bool { return c == '\n' })
		case c == '"', c == '\'':
			stop := closing(text, at)
			if stop < 0 {
				return nil, fmt.Errorf("line %d: the text that begins with %c has no end", line, c)
			}
			inner := text[at+1 : stop]
			all = append(all, word{strings.ReplaceAll(inner, `\`+string(c), string(c)), true, line})
			line, at = line+strings.Count(inner, "\n"), stop+1
		default:
			stop := end(text, at, func(c byte) bool { return isSpace(c) || strings.IndexByte("\n,;=\"'#", c) >= 0 })
			all = append(all, word{text[at:stop], false, line})
			at = stop
		}
	}
	return all, nil
}

// closing returns the place of the quote that ends the text which begins at another one, or -1. A backslash goes before quotes in it.
func closing(text string, at int) int {
	for n := at + 1; n < len(text); n++ {
		if text[n] == text[at] && text[n-1] != '\\' {
			return n
		}
	}
	return -1
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\r' }

// end returns the place of the next byte that ends something, or the length.
func end(text string, at int, ends func(byte) bool) int {
	for at < len(text) && !ends(text[at]) {
		at++
	}
	return at
}

// arguments splits a command as monit does: at spaces, except within quotes.
func arguments(command string) (all []string) {
	var one strings.Builder
	within, begun := byte(0), false
	for _, c := range []byte(command) {
		switch {
		case within == 0 && (c == '\'' || c == '"'):
			within, begun = c, true
		case c == within && within != 0:
			within = 0
		case within == 0 && (isSpace(c) || c == '\n'):
			if begun {
				all = append(all, one.String())
				one.Reset()
			}
			begun = false
		default:
			one.WriteByte(c)
			begun = true
		}
	}
	if begun {
		all = append(all, one.String())
	}
	return all
}
