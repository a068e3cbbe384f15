package erb

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
)

// maxOutput bounds, in bytes, what all templates that Go renders may come to in
// one call. What Ruby may write is up to who runs it.
const maxOutput = 64 << 20

// Template is one to render for one instance.
type Template struct {
	Group, Job  string // whose it is, for messages
	Index       int    // of the instance
	Source      string // the name of its file
	Destination string // the file to render, within the job
	Text        []byte
	Context     *Context // one pointer for all templates of a job and instance
}

// bpm reports whether a template renders the job's bpm.yml.
func (t *Template) bpm() bool { return path.Base(t.Destination) == "bpm.yml" }

// Render renders all templates, and returns what became of each, in their
// order. The error is faults with all that is wrong, MissingRuby, or what went
// wrong with Ruby itself. A nil ruby is none.
func Render(ctx context.Context, all []Template, ruby Ruby) ([][]byte, error) {
	out := make([][]byte, len(all))
	rest, faults, err := renderSimple(all, out)
	switch {
	case err != nil:
		return nil, err
	case len(rest) > 0 && ruby == nil:
		return nil, errors.Join(faults.err(), missing(all, rest))
	case len(rest) > 0:
		more, err := render(ctx, ruby, all, rest, out)
		if err != nil {
			return nil, errors.Join(faults.err(), err)
		}
		faults = append(faults, more...)
	}
	return out, faults.err()
}

// renderSimple renders what Go can, and returns the places of the rest.
func renderSimple(all []Template, out [][]byte) (rest []int, faults faults, err error) {
	simple, total := newCache(), 0
	for i := range all {
		var fault *fault
		text, err := simple.render(&all[i])
		switch {
		case err == nil:
			out[i] = text
		case errors.As(err, &fault):
			faults = append(faults, fault)
		default:
			rest = append(rest, i)
		}
		if total += len(text); total > maxOutput {
			return nil, nil, fmt.Errorf("the templates come to more than %d MB", maxOutput>>20)
		}
	}
	return rest, faults, nil
}

// cache keeps what templates are made of: each is there for many instances.
type cache map[string]*scanned

type scanned struct {
	parts  []part
	simple bool
}

func newCache() cache { return cache{} }

func (c cache) render(t *Template) ([]byte, error) {
	s, ok := c[string(t.Text)]
	if !ok {
		s = &scanned{}
		s.parts, s.simple = scan(string(t.Text))
		c[string(t.Text)] = s
	}
	if !s.simple {
		return nil, errRuby
	}
	var b strings.Builder
	for _, p := range s.parts {
		text, err := p.render(t)
		if err != nil {
			return nil, err
		}
		b.WriteString(text)
	}
	return []byte(b.String()), nil
}

func (p part) render(t *Template) (string, error) {
	if p.print == nil {
		return p.text, nil
	}
	v, err := p.print.evaluate(t.Context)
	switch {
	case errors.Is(err, errRuby):
		return "", err
	case err != nil:
		return "", &fault{Template: t, Line: p.line, What: err.Error()}
	}
	s, ok := text(v)
	if !ok {
		return "", errRuby
	}
	return s, nil
}
