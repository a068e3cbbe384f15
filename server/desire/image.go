package desire

import (
	"maps"
	"net/url"
	"slices"
	"strings"

	"cupola/store/cf"
)

// ImageScheme begins the reference of an image.
const ImageScheme = "docker://"

// IsImage reports whether a stack is an image's reference; else it is a name.
func IsImage(stack string) bool { return strings.HasPrefix(stack, ImageScheme) }

// rootFS is what a lifecycle's containers run on. stack is the name of the one
// that it was staged on, for a lifecycle without an image.
func rootFS(l cf.Lifecycle, stack string) string {
	if l.Image != nil {
		return l.Image.Reference
	}
	return "preloaded:" + stack
}

// CacheKey names what of a build cache fits: a build on another stack has
// another cache.
func CacheKey(l cf.Lifecycle) string {
	if l.Image != nil {
		return l.Image.Reference
	}
	return l.Stack
}

// imageCredential is what the registry of a droplet's image asks for: a cell pulls
// an image that is no longer in its cache. of is that of the docker package.
func imageCredential(app *cf.App, l cf.Lifecycle, of cf.Credential) cf.Credential {
	switch {
	case l.Image == nil:
		return cf.Credential{}
	case l.Type == cf.LifecycleDocker:
		return of
	}
	return CredentialFor(app.Credentials, l.Image.Reference)
}

// CredentialFor returns the credential for a registry, or for that of an image's
// reference, which has a user and a password; tokens serve buildpacks only, and BuildpackCredential takes them, too. As in RFC-0046, host names decide: an
// entry without a port is for each port of its host, and comes after one with the
// registry's port. Entries may also be URLs, and in upper case.
func CredentialFor(all cf.Credentials, registry string) cf.Credential {
	return bestCredential(all, registry, false)
}

// BuildpackCredential is CredentialFor for the registry of a buildpack.
func BuildpackCredential(all cf.Credentials, registry string) cf.Credential {
	return bestCredential(all, registry, true)
}

func bestCredential(all cf.Credentials, registry string, tokens bool) (found cf.Credential) {
	host, port := hostOf(registry)
	best := 0
	for _, entry := range slices.Sorted(maps.Keys(all)) {
		have := all[entry]
		if have.Username == "" && !(tokens && have.Token != "") {
			continue
		}
		fit := 0
		switch entryHost, entryPort := hostOf(entry); {
		case entry == registry:
			fit = 4
		case entryHost != host:
		case entryPort == port && port != "":
			fit = 3
		case entryPort == "":
			fit = 2
		case entryPort == tlsPort && port == "":
			fit = 1
		}
		if fit > best {
			best, found = fit, cf.Credential{Username: have.Username, Password: have.Password}
			if found.Username == "" {
				found.Token = have.Token
			}
		}
	}
	return found
}

// tlsPort is the port of a registry without one.
const tlsPort = "443"

// hostOf returns the host of a registry, or of an image's reference, and the port that it names, if any.
func hostOf(registry string) (host, port string) {
	if _, rest, ok := strings.Cut(registry, "://"); ok {
		registry = rest
	}
	registry, _, _ = strings.Cut(registry, "/")
	u := url.URL{Host: strings.ToLower(registry)}
	host, port = u.Hostname(), u.Port()
	switch host {
	case "index.docker.io", "registry-1.docker.io":
		host = "docker.io"
	}
	return host, port
}
