package redact

import (
	"strings"

	"cupola/runtime/pattern"
)

// assignment matches --flag=value and NAME=value, alone or within a script.
var assignment = pattern.Lazy(`(^|[\s;"'])(-{0,2}[A-Za-z][\w.-]*)=("[^"]*"|'[^']*'|[^\s;"']+)`)

// userinfo matches the password in a URL.
var userinfo = pattern.Lazy(`(://[^\s:/@]*:)([^\s/@]+)@`)

// Args replaces the credentials of a command line by a placeholder: the values of
// flags and assignments that are Named, and passwords in URLs.
func Args(args []string, placeholder string) []string {
	out := make([]string, len(args))
	for n, arg := range args {
		if n > 0 && isFlag(args[n-1]) && !strings.HasPrefix(arg, "-") {
			out[n] = Value(args[n-1], arg, placeholder)
			continue
		}
		out[n] = inText(arg, placeholder)
	}
	return out
}

// Value returns the value of a flag or an environment variable, without its
// credentials.
func Value(name, value, placeholder string) string {
	if Named(name) && !harmless().MatchString(value) {
		return placeholder
	}
	return inText(value, placeholder)
}

// isFlag reports whether the next argument may be the value of this one.
func isFlag(arg string) bool { return strings.HasPrefix(arg, "-") && !strings.Contains(arg, "=") }

func inText(text, placeholder string) string {
	text = assignment().ReplaceAllStringFunc(text, func(found string) string {
		m := assignment().FindStringSubmatch(found)
		if !Named(m[2]) || harmless().MatchString(strings.Trim(m[3], `"'`)) {
			return found
		}
		return m[1] + m[2] + "=" + placeholder
	})
	return userinfo().ReplaceAllStringFunc(text, func(found string) string {
		m := userinfo().FindStringSubmatch(found)
		if harmless().MatchString(m[2]) {
			return found
		}
		return m[1] + placeholder + "@"
	})
}
