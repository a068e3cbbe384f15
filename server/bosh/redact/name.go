package redact

import (
	"slices"
	"strings"

	"cupola/runtime/pattern"
)

// credentials are the words of a name for which its value is a credential.
var credentials = []string{
	"password", "passwords", "passwd", "pwd", "passphrase", "secret", "secrets", "token", "tokens",
	"credential", "credentials", "creds", "apikey", "authorization",
}

// attributes are the last words of names that describe a credential, and are none.
var attributes = []string{
	"name", "id", "type", "path", "file", "dir", "url", "uri", "host", "port", "length", "size", "bytes", "policy", "format", "enabled", "required",
	"ttl", "expiry", "expiration", "validity", "lifetime", "timeout", "interval", "seconds", "minutes", "hours", "days",
}

// words splits names like admin_password, adminPassword and ADMIN-PASSWORD.
var words = pattern.Lazy(`[A-Z]+[a-z]*|[a-z]+|[0-9]+`)

// Named reports whether a property, flag or environment variable of this name has
// a credential as its value.
func Named(name string) bool {
	all := words().FindAllString(name, -1)
	if len(all) == 0 {
		return false
	}
	for i := range all {
		all[i] = strings.ToLower(all[i])
	}
	last := all[len(all)-1]
	switch {
	case slices.Contains(attributes, last):
		return false
	case last == "key" || last == "keys":
		return len(all) > 1 && !slices.Contains([]string{"public", "pub"}, all[len(all)-2])
	}
	return slices.ContainsFunc(all, func(word string) bool { return slices.Contains(credentials, word) })
}

// harmless matches values that are not credentials themselves: references to variables
// of a manifest or a shell, files of jobs, booleans.
var harmless = pattern.Lazy(`^(\(\(.*\)\)|\$[A-Za-z_({].*|/var/vcap/.*|true|false|)$`)

// Texts are the credentials in a value: the strings below keys that are Named.
func Texts(v any) []string { return texts(v, false) }

func texts(v any, named bool) (all []string) {
	switch v := v.(type) {
	case string:
		if named && !harmless().MatchString(v) {
			return []string{v}
		}
	case []any:
		for _, item := range v {
			all = append(all, texts(item, named)...)
		}
	case map[string]any:
		for key, item := range v {
			all = append(all, texts(item, named || Named(key))...)
		}
	}
	return all
}
