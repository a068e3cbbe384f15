package api

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// step is a request and what must come of it.
type step struct {
	as     string // "" is admin
	method string
	path   string
	body   string
	status int
	want   string // JSON that the answer must have: objects may have more, arrays not
	save   string // keeps the answer's guid under a name, for {name} in later steps
}

// run makes the steps in order.
func (w *world) run(t *testing.T, steps []step) {
	t.Helper()
	for i, s := range steps {
		if s.as == "" {
			s.as = "admin"
		}
		path, body := w.fill(s.path), w.fill(s.body)
		got := w.ask(s.as, s.method, path, body, "")
		at := fmt.Sprintf("step %d: %s: %s %s %s", i, s.as, s.method, path, body)
		if got.status != s.status {
			t.Fatalf("%s: got %d %s; want %d", at, got.status, got.text, s.status)
		}
		if s.save != "" {
			w.saved[s.save] = guidOf(got)
		}
		if want := w.fill(s.want); want != "" {
			var v any
			if err := json.Unmarshal([]byte(want), &v); err != nil {
				t.Fatalf("%s: the wanted JSON: %v", at, err)
			}
			if why := lacks(v, got.json, ""); why != "" {
				t.Errorf("%s: %s\ngot  %s\nwant %s", at, why, got.text, want)
			}
		}
	}
}

// guidOf is the GUID of what was answered, or of its job.
func guidOf(a answer) string {
	if m, ok := a.json.(map[string]any); ok {
		if g, ok := m["guid"].(string); ok {
			return g
		}
	}
	location := a.header.Get("Location")
	return location[strings.LastIndex(location, "/")+1:]
}

func (w *world) fill(s string) string {
	for name, g := range w.saved {
		s = strings.ReplaceAll(s, "{"+name+"}", g)
	}
	return strings.ReplaceAll(s, "{url}", w.url)
}

// lacks reports where got is not what is wanted; "" when it is.
func lacks(want, got any, at string) string {
	switch want := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			return fmt.Sprintf("%s is %v, no object", at, got)
		}
		for k, v := range want {
			if _, ok := g[k]; !ok {
				return fmt.Sprintf("%s.%s is absent", at, k)
			}
			if why := lacks(v, g[k], at+"."+k); why != "" {
				return why
			}
		}
		return ""
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(want) {
			return fmt.Sprintf("%s is %v; want %d elements", at, got, len(want))
		}
		for i := range want {
			if why := lacks(want[i], g[i], fmt.Sprintf("%s[%d]", at, i)); why != "" {
				return why
			}
		}
		return ""
	}
	if want != got {
		return fmt.Sprintf("%s is %v; want %v", at, got, want)
	}
	return ""
}

// detail is the JSON of an answer with one error.
func detail(code int, text string) string {
	b, _ := json.Marshal(text)
	return fmt.Sprintf(`{"errors": [{"code": %d, "detail": %s}]}`, code, b)
}
