package erb

import (
	"context"
	"errors"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"cupola/server/bosh/tree"
)

func TestRenderTellsWhatEndedRuby(t *testing.T) {
	c := &Context{Spec: map[string]any{}}
	all := []Template{
		{Group: "g", Job: "a", Source: "one", Text: []byte("<% 1 %>"), Context: c},
		{Group: "g", Job: "a", Source: "two", Text: []byte("<% 2 %>"), Context: c},
		{Group: "g", Job: "a", Source: "three", Text: []byte("<% 3 %>"), Context: c},
	}
	const done = `{"text":"eA=="}` + "\n"
	refused := errors.New("no container")
	for _, test := range []struct {
		output string
		err    error
		want   string
	}{
		{done + done + done, nil, ""},
		{done + done + done + "more", Ended("status 1"), ""}, // all that was asked for is there
		{done, Ended("took too long"), `instance g/0, job "a", template two: took too long`},
		{done + `{"error":"bad","line":3}` + "\n" + done[:5], Ended("took too long"), "instance g/0, job \"a\", template two:3: bad\ninstance g/0, job \"a\", template three: took too long"},
		{done + done, nil, `instance g/0, job "a", template three: Ruby ended before all was rendered`},
		{"", refused, "run Ruby: no container"},
		{"", ErrNone, `job "a" needs Ruby to render 1 templates (bpm.yml: no)`},
	} {
		out, err := Render(t.Context(), all, func(context.Context, []byte, []byte) ([]byte, error) { return []byte(test.output), test.err })
		if test.want == "" {
			if err != nil || string(out[2]) != "x" {
				t.Errorf("got %q, %v", out, err)
			}
		} else if err == nil || !strings.HasPrefix(err.Error(), test.want) {
			t.Errorf("got %v; want %s", err, test.want)
		}
	}
}

func TestRenderBoundsSimpleTemplates(t *testing.T) {
	c := &Context{Properties: map[string]any{"x": strings.Repeat("x", 1<<20)}}
	all := make([]Template, 65)
	for i := range all {
		all[i] = Template{Text: []byte("<%= p('x') %>"), Context: c}
	}
	if _, err := Render(t.Context(), all, nil); err == nil || !strings.Contains(err.Error(), "more than 64 MB") {
		t.Errorf("got %v", err)
	}
	if _, err := Render(t.Context(), all[:60], nil); err != nil {
		t.Error(err)
	}
}

// TestKeysInOrder has Ruby find the keys of maps in an order, and those that it does not
// name after them.
func TestKeysInOrder(t *testing.T) {
	doc := &yaml.Node{}
	if err := yaml.Unmarshal([]byte("zone: {b: 1, a: [{y: 1, x: 2}]}\nakey: 1\n"), doc); err != nil {
		t.Fatal(err)
	}
	o := &tree.Order{}
	o.Put("users.zoe", nil)
	o.Put("map", tree.OrderOf(doc.Content[0]))
	o.Put("users.adam", nil)
	c := &Context{Spec: map[string]any{}, Order: o, Properties: map[string]any{
		"users": map[string]any{"adam": 1, "zoe": 2, "bob": 3},
		"map":   map[string]any{"zone": map[string]any{"a": []any{map[string]any{"x": 2, "y": 1}}, "b": 1.0}, "akey": 1, "0": 5},
	}}
	out, err := Render(t.Context(), []Template{{Text: []byte("<%= JSON.generate(p('users')) %> <%= JSON.generate(p('map')) %>"), Context: c}}, hostRuby(t))
	if want := `{"zoe":2,"adam":1,"bob":3} {"zone":{"b":1.0,"a":[{"y":1,"x":2}]},"akey":1,"0":5}`; err != nil || string(out[0]) != want {
		t.Errorf("got %s, %v; want %s", out, err, want)
	}
}
