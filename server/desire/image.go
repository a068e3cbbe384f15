package desire

import (
	"slices"
	"strings"

	"cupola/store/cf"
)

// ImageScheme begins the reference of an image.
const ImageScheme = "docker://"

// IsImage tells whether a stack is an image's reference; else it is a name.
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

// CredentialFor returns the credential for a registry, which has a user and a
// password; tokens serve buildpacks only.
func CredentialFor(all cf.Credentials, registry string) cf.Credential {
	for _, host := range hostsOf(registry) {
		if have := all[host]; have.Username != "" {
			return cf.Credential{Username: have.Username, Password: have.Password}
		}
	}
	return cf.Credential{}
}

// hostsOf are the names under which a registry may stand in credentials.
func hostsOf(registry string) []string {
	hub := []string{"docker.io", "index.docker.io", "registry-1.docker.io", "https://index.docker.io/v1/"}
	if slices.Contains(hub, registry) {
		return hub
	}
	return []string{registry}
}
