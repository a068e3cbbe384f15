package toml

import (
	"fmt"
	"strconv"
	"strings"

	"cupola/runtime/pattern"
)

func (p *parser) value() (any, error) {
	p.depth++
	defer func() { p.depth-- }()
	if p.depth > maxDepth {
		return nil, fmt.Errorf("values are nested more than %d times", maxDepth)
	}
	switch p.peek() {
	case '"':
		if strings.HasPrefix(p.text[p.at:], `"""`) {
			return p.longBasic()
		}
		return p.basic()
	case '\'':
		if strings.HasPrefix(p.text[p.at:], `'''`) {
			return p.longLiteral()
		}
		return p.literal()
	case '[':
		return p.array()
	case '{':
		return p.inline()
	}
	return p.scalar()
}

func (p *parser) array() (any, error) {
	p.at++
	all := []any{}
	for {
		p.blank()
		if p.peek() == ']' {
			p.at++
			return all, nil
		}
		v, err := p.value()
		if err != nil {
			return nil, err
		}
		all = append(all, v)
		p.blank()
		switch p.peek() {
		case ',':
			p.at++
		case ']':
		default:
			return nil, fmt.Errorf("an array does not end, or lacks a comma, at %q", p.rest())
		}
	}
}

// inline reads an inline table, which is complete.
func (p *parser) inline() (any, error) {
	p.at++
	t := Table{}
	inner := &parser{text: p.text, at: p.at, depth: p.depth, root: t, closed: map[string]bool{}, sealed: map[string]bool{}}
	defer func() { p.at = inner.at }()
	inner.spaces()
	if inner.peek() == '}' {
		inner.at++
		return t, nil
	}
	for {
		if err := inner.pair(t, ""); err != nil {
			return nil, err
		}
		inner.spaces()
		switch inner.peek() {
		case ',':
			inner.at++
		case '}':
			inner.at++
			return t, nil
		default:
			return nil, fmt.Errorf("an inline table does not end, or lacks a comma, at %q", inner.rest())
		}
	}
}

var (
	number   = pattern.Lazy(`^[+-]?(0|[1-9](_?[0-9])*)$`)
	based    = pattern.Lazy(`^0(x[0-9A-Fa-f](_?[0-9A-Fa-f])*|o[0-7](_?[0-7])*|b[01](_?[01])*)$`)
	float    = pattern.Lazy(`^[+-]?((0|[1-9](_?[0-9])*)(\.[0-9](_?[0-9])*)?([eE][+-]?[0-9](_?[0-9])*)?|inf|nan)$`)
	moment   = pattern.Lazy(`^([0-9]{4}-[0-9]{2}-[0-9]{2}([Tt ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?([Zz]|[+-][0-9]{2}:[0-9]{2})?)?|[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?)$`)
	dateOnly = pattern.Lazy(`^[0-9]{4}-[0-9]{2}-[0-9]{2}$`)
)

// scalar reads a number, a boolean, or a date or time.
func (p *parser) scalar() (any, error) {
	word := p.word()
	if dateOnly().MatchString(word) && p.peek() == ' ' && p.at+1 < len(p.text) && '0' <= p.text[p.at+1] && p.text[p.at+1] <= '9' {
		p.at++
		word += " " + p.word()
	}
	plain := strings.ReplaceAll(word, "_", "")
	switch {
	case word == "true", word == "false":
		return word == "true", nil
	case moment().MatchString(word):
		return Moment(word), nil
	case number().MatchString(word):
		return integer(plain, 10)
	case based().MatchString(word):
		return integer(plain, 0)
	case float().MatchString(word):
		f, err := strconv.ParseFloat(plain, 64)
		if err != nil {
			return nil, fmt.Errorf("the number %s is out of range", word)
		}
		return f, nil
	case word == "":
		return nil, fmt.Errorf("a value is missing at %q", p.rest())
	}
	return nil, fmt.Errorf("invalid value %q", word[:min(len(word), 40)])
}

func integer(text string, base int) (any, error) {
	n, err := strconv.ParseInt(text, base, 64)
	if err != nil {
		return nil, fmt.Errorf("the integer %s is out of range", text)
	}
	return n, nil
}

func (p *parser) word() string {
	start := p.at
	for p.at < len(p.text) && strings.IndexByte(" \t\r\n,]}#", p.text[p.at]) < 0 {
		p.at++
	}
	return p.text[start:p.at]
}

// literal reads a 'string', which has no escapes.
func (p *parser) literal() (string, error) {
	s, _, ok := strings.Cut(p.text[p.at+1:], "'")
	if !ok || strings.Contains(s, "\n") {
		return "", fmt.Errorf("a string does not end: %s", p.rest())
	}
	p.at += len(s) + 2
	return s, nil
}

func (p *parser) longLiteral() (string, error) {
	rest := p.text[p.at+3:]
	s, _, ok := strings.Cut(rest, "'''")
	if !ok {
		return "", fmt.Errorf("a string does not end: %s", p.rest())
	}
	end := len(s) + 3
	for range 2 { // up to two quotation marks may stand before the end
		if strings.HasPrefix(rest[end:], "'") {
			s += "'"
			end++
		}
	}
	p.at += 3 + end
	return firstLine(s), nil
}

// firstLine is a long string without the line end that follows its beginning.
func firstLine(s string) string {
	return strings.TrimPrefix(strings.TrimPrefix(s, "\r"), "\n")
}

// basic reads a "string".
func (p *parser) basic() (string, error) {
	p.at++
	var b strings.Builder
	for {
		switch c := p.peek(); {
		case c == '"':
			p.at++
			return b.String(), nil
		case c == '\n', p.at >= len(p.text):
			return "", fmt.Errorf("a string does not end")
		case c == '\\':
			if err := p.escape(&b); err != nil {
				return "", err
			}
		default:
			b.WriteByte(c)
			p.at++
		}
	}
}

func (p *parser) longBasic() (string, error) {
	p.at += 3
	p.at += len(p.text[p.at:]) - len(firstLine(p.text[p.at:]))
	var b strings.Builder
	for {
		rest := p.text[p.at:]
		switch {
		case rest == "":
			return "", fmt.Errorf("a string does not end")
		case strings.HasPrefix(rest, `"""`):
			p.at += 3
			for range 2 {
				if p.peek() == '"' {
					b.WriteByte('"')
					p.at++
				}
			}
			return b.String(), nil
		case rest[0] == '\\' && continues(rest[1:]):
			p.at += len(rest) - len(strings.TrimLeft(rest[1:], " \t\r\n"))
		case rest[0] == '\\':
			if err := p.escape(&b); err != nil {
				return "", err
			}
		default:
			b.WriteByte(rest[0])
			p.at++
		}
	}
}

// continues reports whether a line ends here: a backslash before it removes all space
// up to the next character.
func continues(rest string) bool {
	return strings.HasPrefix(strings.TrimLeft(rest, " \t\r"), "\n")
}

var escapes = map[byte]string{'b': "\b", 't': "\t", 'n': "\n", 'f': "\f", 'r': "\r", '"': `"`, '\\': `\`}

func (p *parser) escape(b *strings.Builder) error {
	p.at++
	c := p.peek()
	p.at++
	if s, ok := escapes[c]; ok {
		b.WriteString(s)
		return nil
	}
	digits := map[byte]int{'u': 4, 'U': 8}[c]
	if digits == 0 || p.at+digits > len(p.text) {
		return fmt.Errorf("invalid escape \\%c in a string", c)
	}
	text := p.text[p.at : p.at+digits]
	n, err := strconv.ParseUint(text, 16, 32)
	if err != nil || n > 0x10ffff || 0xd800 <= n && n <= 0xdfff {
		return fmt.Errorf("invalid escape \\%c%s in a string", c, text)
	}
	p.at += digits
	b.WriteRune(rune(n))
	return nil
}
