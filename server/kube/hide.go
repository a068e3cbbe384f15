package kube

import (
	"regexp"
	"slices"
	"strings"

	"cupola/runtime/pattern"
	"cupola/server/bosh/redact"
)

// shortestSecret is how long a text is at least that is hidden: a shorter one
// is part of too many others.
const shortestSecret = 4

// public are the fields of variables that are not secrets.
var public = []string{"ca", "certificate", "public_key", "public_key_fingerprint"}

// hiding hides secrets in texts.
type hiding struct {
	values *strings.Replacer
	words  *regexp.Regexp // nil for none
}

// word matches credentials like "postgres", which are parts of paths and names as well.
var word = pattern.Lazy(`^[a-z]{1,12}$`)

// hide puts the placeholder in place of secrets in the environment and the
// arguments of processes: those that templates wrote there, and those that the
// manifest or bpm.yml names as credentials.
func (r *rendering) hide() {
	h := r.hiding()
	for _, o := range r.objects {
		if o.Kind() != "Secret" {
			h.in(doc(o))
		}
	}
}

func (r *rendering) hiding() (h hiding) {
	values := slices.Clone(r.Foreign)
	for _, v := range r.Variables {
		for field, value := range v.Fields {
			if !slices.Contains(public, field) {
				values = append(values, value)
			}
		}
	}
	var words []string
	for _, value := range r.Literal {
		if word().MatchString(value) {
			words = append(words, value)
		} else {
			values = append(values, value)
		}
	}
	values = slices.DeleteFunc(values, func(s string) bool { return len(s) < shortestSecret })
	slices.SortFunc(values, func(a, b string) int { return len(b) - len(a) }) // one that contains another comes first
	var pairs []string
	for _, value := range values {
		pairs = append(pairs, escaped(value), placeholder)
	}
	h.values = strings.NewReplacer(pairs...)
	if words != nil {
		h.words = regexp.MustCompile(`(^|[^\w./-])(?:` + strings.Join(words, "|") + `)($|[^\w./-])`)
	}
	return h
}

func (h hiding) text(s string) string {
	s = h.values.Replace(s)
	if h.words != nil {
		s = h.words.ReplaceAllString(s, "${1}"+placeholder+"${2}")
	}
	return s
}

// in hides texts in commands, arguments and environments at any depth.
func (h hiding) in(m doc) {
	name, _ := m["name"].(string)
	for key, v := range m {
		switch v := v.(type) {
		case doc:
			h.in(v)
		case []any:
			h.list(v, key == "args" || key == "command")
		case string:
			if key == "value" {
				m[key] = redact.Value(name, h.text(v), placeholder)
			}
		}
	}
}

// list hides texts in a list, which may be a command line.
func (h hiding) list(all []any, command bool) {
	var line []string
	for _, item := range all {
		switch item := item.(type) {
		case doc:
			h.in(item)
		case string:
			line = append(line, h.text(item))
		}
	}
	if command && len(line) == len(all) {
		for n, text := range redact.Args(line, placeholder) {
			all[n] = text
		}
	}
}
