package buildpack

import (
	"net/url"
	"strings"
)

// isZip tells whether a URL is of a zip file; every other one is of a git
// repository. It is Cloud Foundry's rule.
func isZip(u *url.URL) bool { return strings.HasSuffix(u.Path, ".zip") }
