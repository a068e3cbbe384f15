package logcache

import (
	"errors"
	"regexp/syntax"
)

// maxProgram bounds what a regular expression that anybody may send compiles to,
// in instructions of some 40 bytes. Names with "or" between them have one for
// each letter; counted repetitions have many for a few.
const maxProgram = 100_000

// ErrPattern refuses a regular expression.
var ErrPattern = errors.New("the regular expression is too large, with its repetitions written out")

// CheckPattern refuses a regular expression that takes much memory before that
// is taken. What is none is another's to refuse.
func CheckPattern(text string) error {
	re, err := syntax.Parse(text, syntax.Perl)
	if err == nil && instructions(re) > maxProgram {
		return ErrPattern
	}
	return nil
}

// instructions is about how many there will be; more than maxProgram is enough.
func instructions(re *syntax.Regexp) (n int) {
	n = 1
	if re.Op == syntax.OpLiteral {
		n = len(re.Rune)
	}
	for _, sub := range re.Sub {
		n = min(n+instructions(sub), maxProgram+1)
	}
	if re.Op == syntax.OpRepeat {
		n *= max(re.Min, re.Max, 1)
	}
	return min(n, maxProgram+1)
}
