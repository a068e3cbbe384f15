package tool

import (
	"regexp"
	"strings"
)

// compile makes a regular expression of POSIX text. In a basic one, which is
// sed's and grep's without -E, the characters ( ) { } + ? | stand for
// themselves and are operators after a backslash: just the other way round.
func compile(text string, extended, ignoreCase bool) (*regexp.Regexp, error) {
	if !extended {
		text = fromBasic(text)
	}
	if ignoreCase {
		text = "(?i)" + text
	}
	return regexp.Compile(text)
}

func fromBasic(text string) string {
	const swapped = "(){}+?|"
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '[':
			end := classEnd(text, i)
			b.WriteString(text[i:end])
			i = end - 1
		case c == '\\' && i+1 < len(text):
			i++
			if strings.IndexByte(swapped, text[i]) < 0 {
				b.WriteByte('\\')
			}
			b.WriteByte(text[i])
		case strings.IndexByte(swapped, c) >= 0, c == '*' && i == 0:
			b.WriteString("\\" + string(c))
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// classEnd is the index after the bracket expression that starts at start.
func classEnd(text string, start int) int {
	i := start + 1
	if i < len(text) && text[i] == '^' {
		i++
	}
	if i < len(text) && text[i] == ']' {
		i++
	}
	for i < len(text) && text[i] != ']' {
		if strings.HasPrefix(text[i:], "[:") {
			if end := strings.Index(text[i:], ":]"); end > 0 {
				i += end + 1
			}
		}
		i++
	}
	return min(i+1, len(text))
}
