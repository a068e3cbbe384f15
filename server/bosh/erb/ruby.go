package erb

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
)

// Ruby runs a program in a Ruby that can reach nothing: it reads input from its
// standard input, and what it writes to its standard output is returned, also
// that of a program that failed. The error is an Ended when the program is to
// blame, and ErrNone when there is no Ruby after all.
type Ruby func(ctx context.Context, program, input []byte) (output []byte, err error)

// ErrNone says that there is no Ruby.
var ErrNone = errors.New("there is no ruby")

// Ended says what ended a program before it was done: that it failed, or took too
// long or too much.
type Ended string

// Error is the text itself.
func (e Ended) Error() string { return string(e) }

// program needs nothing but what comes with Ruby 2.6 or newer.
//
//go:embed render.rb
var program []byte

type request struct {
	Texts     [][]byte    `json:"texts"`
	Values    []any       `json:"values"` // properties and links: those of a job are the same for many instances
	Contexts  []inContext `json:"contexts"`
	Templates []toRuby    `json:"templates"`

	texts    map[string]int
	values   map[uintptr]int
	contexts map[*Context]int
}

type inContext struct {
	Spec       any `json:"spec"`
	Properties int `json:"properties"` // places in Values
	Links      int `json:"links"`
}

type toRuby struct {
	Text    int `json:"text"`
	Context int `json:"context"`
}

type fromRuby struct {
	Text  []byte `json:"text"`
	Error string `json:"error"`
	Line  int    `json:"line"`
}

// render renders the templates at those indexes of all with Ruby, into out.
func render(ctx context.Context, ruby Ruby, all []Template, at []int, out [][]byte) (faults, error) {
	r := request{texts: map[string]int{}, values: map[uintptr]int{}, contexts: map[*Context]int{}}
	for _, i := range at {
		r.add(&all[i])
	}
	input, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("tell Ruby what to render: %w", err)
	}
	output, failure := ruby(ctx, program, input)
	var faults faults
	done := 0
	for s := lines(output); done < len(at) && s.Scan(); done++ {
		var got fromRuby
		if err := json.Unmarshal(s.Bytes(), &got); err != nil {
			break // it was cut off
		}
		out[at[done]] = got.Text
		if got.Error != "" {
			faults = append(faults, &fault{&all[at[done]], got.Line, got.Error})
		}
	}
	if done == len(at) {
		return faults, nil
	}
	var ended Ended
	switch {
	case errors.Is(failure, ErrNone):
		return nil, missing(all, at)
	case failure == nil:
		ended = "Ruby ended before all was rendered"
	case !errors.As(failure, &ended):
		return nil, fmt.Errorf("run Ruby: %w", failure)
	}
	return append(faults, &fault{Template: &all[at[done]], What: ended.Error()}), nil
}

func lines(output []byte) *bufio.Scanner {
	s := bufio.NewScanner(bytes.NewReader(output))
	s.Buffer(nil, max(len(output), 1)+1)
	return s
}

func (r *request) add(t *Template) {
	text, ok := r.texts[string(t.Text)]
	if !ok {
		text = len(r.Texts)
		r.texts[string(t.Text)] = text
		r.Texts = append(r.Texts, t.Text)
	}
	at, ok := r.contexts[t.Context]
	if !ok {
		at = len(r.Contexts)
		r.contexts[t.Context] = at
		r.Contexts = append(r.Contexts, r.context(t.Context))
	}
	r.Templates = append(r.Templates, toRuby{text, at})
}

func (r *request) context(c *Context) inContext {
	return inContext{
		Spec:       forRuby(c.Spec, nil),
		Properties: r.value(reflect.ValueOf(c.Properties), func() any { return forRuby(c.Properties, c.Order) }),
		Links: r.value(reflect.ValueOf(c.Links), func() any {
			links := make(map[string]any, len(c.Links))
			for name, l := range c.Links {
				links[name] = linkForRuby(l)
			}
			return links
		}),
	}
}

// value is the place of a map among the values; one map has one place.
func (r *request) value(m reflect.Value, values func() any) int {
	at, ok := r.values[m.Pointer()]
	if !ok {
		at = len(r.Values)
		r.values[m.Pointer()] = at
		r.Values = append(r.Values, values())
	}
	return at
}
