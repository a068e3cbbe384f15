package desire

import (
	"fmt"
	"slices"
	"strings"

	"cupola/rootfs/reference"
	"cupola/runtime/pattern"
	"cupola/store/cf"
)

// Choice is the buildpacks of a build.
type Choice struct {
	Buildpacks []Buildpack
	Named      bool
	Missing    []string // images of Cloud Native Buildpacks that the build has not taken yet
}

// Choose returns the buildpacks that a lifecycle asks for out of all admin
// buildpacks, which are in the order of their position. A choice that cannot be
// made is a BuildError.
func Choose(l cf.Lifecycle, all []*cf.Buildpack) (Choice, error) {
	all = slices.DeleteFunc(slices.Clone(all), func(b *cf.Buildpack) bool { return !isFor(b, l) })
	if len(l.Buildpacks) == 0 {
		return detectAmong(l.Stack, all)
	}
	c := Choice{Named: true}
	for _, name := range l.Buildpacks {
		if b := find(name, l.Stack, all); b != nil {
			c.Buildpacks = append(c.Buildpacks, Buildpack{Key: b.Name, Digest: b.Digest})
			continue
		}
		if !IsBuildpackURLFor(l.Type, name) {
			return c, stagingError(fmt.Sprintf("buildpack %q is not there, is disabled, or has no bits for stack %q", name, l.Stack))
		}
		c.add(l, name)
	}
	return c, nil
}

// add adds a buildpack that is named by its URL.
func (c *Choice) add(l cf.Lifecycle, name string) {
	b := Buildpack{Key: keyOfURL(name), URL: name}
	if IsImage(name) {
		b.URL = ""
		if i := slices.IndexFunc(l.Packages, func(p cf.BuildpackImage) bool { return p.Name == name }); i >= 0 {
			b.Image = &l.Packages[i]
		} else {
			c.Missing = append(c.Missing, name)
		}
	}
	c.Buildpacks = append(c.Buildpacks, b)
}

// isFor reports whether a buildpack is one of the lifecycle's kind.
func isFor(b *cf.Buildpack, l cf.Lifecycle) bool {
	return (b.Lifecycle == cf.LifecycleCNB) == (l.Type == cf.LifecycleCNB)
}

func detectAmong(stack string, all []*cf.Buildpack) (Choice, error) {
	var c Choice
	seen := map[string]bool{}
	for _, b := range all {
		if serves(b, stack) && !seen[b.Name] {
			seen[b.Name] = true
			c.Buildpacks = append(c.Buildpacks, Buildpack{Key: b.Name, Digest: find(b.Name, stack, all).Digest})
		}
	}
	if len(c.Buildpacks) == 0 {
		return c, stagingError("There are no buildpacks available") // NoBuildpacksFound's text
	}
	return c, nil
}

// find is the buildpack of the name; one for the stack comes before one for
// any.
func find(name, stack string, all []*cf.Buildpack) *cf.Buildpack {
	return pick(name, stack, all, serves)
}

func pick(name, stack string, all []*cf.Buildpack, usable func(b *cf.Buildpack, stack string) bool) *cf.Buildpack {
	var any *cf.Buildpack
	for _, b := range all {
		if b.Name != name || !usable(b, stack) {
			continue
		}
		if b.Stack == stack {
			return b
		}
		any = b
	}
	return any
}

// Disabled names the buildpacks that a lifecycle names and that are disabled.
func Disabled(l cf.Lifecycle, all []*cf.Buildpack) (names []string) {
	for _, name := range l.Buildpacks {
		if b := pick(name, l.Stack, all, suits); b != nil && isFor(b, l) && !b.Enabled {
			names = append(names, name)
		}
	}
	return names
}

func serves(b *cf.Buildpack, stack string) bool { return b.Enabled && suits(b, stack) }

// suits reports whether a buildpack is one for the stack, enabled or not.
func suits(b *cf.Buildpack, stack string) bool {
	return b.Digest != "" && (b.Stack == "" || b.Stack == stack)
}

// buildpackURL is what Cloud Controller takes for a buildpack's URL (lib/utils/uri_utils.rb):
// a URL with a scheme, or what ssh calls a repository.
var buildpackURL = pattern.Lazy(`^([A-Za-z][A-Za-z0-9+.-]*://\S+|git@.+?:.+?\.git)$`)

// IsBuildpackURL reports whether a buildpack's name is where to fetch it from.
func IsBuildpackURL(name string) bool { return buildpackURL().MatchString(name) }

// IsBuildpackURLFor is IsBuildpackURL for apps of a lifecycle. Cloud Native Buildpacks are
// images, or archives by http (CC: UriUtils.is_cnb_buildpack_uri?).
func IsBuildpackURLFor(lifecycle, name string) bool {
	if lifecycle != cf.LifecycleCNB {
		return IsBuildpackURL(name)
	}
	if IsImage(name) {
		_, err := reference.Parse(name)
		return err == nil
	}
	return IsBuildpackURL(name) && (strings.HasPrefix(name, "http://") || strings.HasPrefix(name, "https://"))
}

// keyOfURL is the URL without its secrets, since the builder may print it, and
// without what the builder would take for the end of a key.
func keyOfURL(url string) string { return strings.ReplaceAll(Redact(url), ",", "%2C") }

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
