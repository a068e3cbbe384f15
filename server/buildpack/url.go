package buildpack

import (
	"net/url"
	"strings"
)

// Redact is a URL without the secrets that it may hold, as Cloud Controller
// shows it.
func Redact(raw string) string {
	scheme, rest, ok := strings.Cut(raw, "://")
	if !ok {
		return raw
	}
	authority, path, slash := strings.Cut(rest, "/")
	i := strings.LastIndexByte(authority, '@')
	if i < 0 {
		return raw
	}
	redacted := scheme + "://***:***@" + authority[i+1:]
	if slash {
		redacted += "/" + path
	}
	return redacted
}

// isZip tells whether a URL is of a zip file; every other one is of a git
// repository. It is Cloud Foundry's rule.
func isZip(u *url.URL) bool { return strings.HasSuffix(u.Path, ".zip") }
