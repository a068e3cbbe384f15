package debian

import (
	"fmt"
	"iter"
	"strings"
)

// A field is one "Name: value" of a control paragraph. The value of a folded
// field keeps its line breaks and the blank that opens each further line, so
// that a paragraph can be written back as it was read.
type field struct {
	name  string
	value string
}

// A paragraph is one block of a control file (deb822(5)), in file order.
type paragraph []field

// get returns the value of the field called name in any case, "" if absent.
func (p paragraph) get(name string) string {
	for _, f := range p {
		if len(f.name) == len(name) && strings.EqualFold(f.name, name) {
			return f.value
		}
	}
	return ""
}

// words splits a list field at blanks and line breaks.
func (p paragraph) words(name string) []string { return strings.Fields(p.get(name)) }

// String writes the paragraph as control file text without a closing empty line.
func (p paragraph) String() string {
	var b strings.Builder
	for _, f := range p {
		b.WriteString(f.name)
		b.WriteByte(':')
		if f.value != "" && f.value[0] != '\n' {
			b.WriteByte(' ')
		}
		b.WriteString(f.value)
		b.WriteByte('\n')
	}
	return b.String()
}

// paragraphs walks control file text; the yielded slice is reused, its strings
// are not. It stops after the first error. Lines that open with '#' are comments.
func paragraphs(text string) iter.Seq2[paragraph, error] {
	return func(yield func(paragraph, error) bool) {
		var p paragraph
		for n := 1; text != ""; n++ {
			line, rest, _ := strings.Cut(text, "\n")
			line, text = strings.TrimSuffix(line, "\r"), rest
			if strings.TrimLeft(line, " \t") == "" {
				if len(p) > 0 && !yield(p, nil) {
					return
				}
				p = p[:0]
				continue
			}
			var err error
			if p, err = p.add(line); err != nil {
				yield(nil, fmt.Errorf("line %d: %w", n, err))
				return
			}
		}
		if len(p) > 0 {
			yield(p, nil)
		}
	}
}

// add appends the field of line, or folds line into the last field.
func (p paragraph) add(line string) (paragraph, error) {
	switch line[0] {
	case '#':
		return p, nil
	case ' ', '\t':
		if len(p) == 0 {
			return p, fmt.Errorf("continuation line before any field")
		}
		p[len(p)-1].value += "\n" + line
		return p, nil
	}
	name, value, ok := strings.Cut(line, ":")
	if !ok || name == "" || strings.ContainsAny(name, " \t") {
		return p, fmt.Errorf("no field name in %.40q", line)
	}
	return append(p, field{name, strings.Trim(value, " \t")}), nil
}
