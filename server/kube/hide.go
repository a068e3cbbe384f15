package kube

import (
	"slices"
	"strings"
)

// shortestSecret is how long a text is at least that is hidden: a shorter one
// is part of too many others.
const shortestSecret = 4

// public are the fields of variables that are no secrets.
var public = []string{"ca", "certificate", "public_key", "public_key_fingerprint"}

// hide puts the placeholder in place of secrets that templates wrote into the
// environment and the arguments of processes.
func (r *rendering) hide() {
	values := slices.Clone(r.Foreign)
	for _, v := range r.Variables {
		for field, value := range v.Fields {
			if !slices.Contains(public, field) {
				values = append(values, value)
			}
		}
	}
	values = slices.DeleteFunc(values, func(s string) bool { return len(s) < shortestSecret })
	slices.SortFunc(values, func(a, b string) int { return len(b) - len(a) }) // one that contains another comes first
	var pairs []string
	for _, value := range values {
		pairs = append(pairs, escaped(value), placeholder)
	}
	replacer := strings.NewReplacer(pairs...)
	for _, o := range r.objects {
		if o.Kind() != "Secret" {
			hideIn(doc(o), replacer)
		}
	}
}

// hideIn hides texts in commands, arguments and environments at any depth.
func hideIn(m doc, secrets *strings.Replacer) {
	for key, v := range m {
		switch v := v.(type) {
		case doc:
			hideIn(v, secrets)
		case []any:
			for n, item := range v {
				if inner, ok := item.(doc); ok {
					hideIn(inner, secrets)
				} else if text, ok := item.(string); ok && (key == "args" || key == "command") {
					v[n] = secrets.Replace(text)
				}
			}
		case string:
			if key == "value" {
				m[key] = secrets.Replace(v)
			}
		}
	}
}
