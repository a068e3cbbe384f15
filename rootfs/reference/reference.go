// Package reference reads and writes references of root file systems: of images in a registry or in an OCI layout, and of
// stacks. It asks no registry.
package reference

import (
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"

	"cupola/runtime/pattern"
)

// Scheme is where the files of a RootFS come from.
type Scheme string

// The schemes of a RootFS.
const (
	SchemeDocker    Scheme = "docker"    // an image in a registry
	SchemeOCI       Scheme = "oci"       // an OCI image layout on this machine
	SchemePreloaded Scheme = "preloaded" // a stack of the store; Diego's precached means the same
)

// Reference names a root file system. Two that name the same are equal.
type Reference struct {
	Scheme     Scheme
	Name       string // of a preloaded stack; of an OCI layout its directory, absolute
	Host       string // of an image: its registry with the port, in lower case; Docker Hub is docker.io
	Repository string // of an image: with the namespace, such as library/busybox
	Tag        string // of an image: "" only with a Digest
	Digest     string // of an image: sha256:… or "", which Tag then decides
}

const (
	dockerHub     = "docker.io"
	defaultTag    = "latest"
	referenceHelp = "docker://host[:port]/namespace/name[:tag][@digest]"
)

// Parse reads docker://…, oci:DIR, preloaded:NAME and precached:NAME, the last two also with // before the name. As docker
// does, it takes the first part of docker://a/b for a registry's host if it holds a '.' or ':' or is localhost; otherwise,
// and in docker:///a/b, the image is on Docker Hub. The tag may also follow a '#', as in Diego's references. Without a tag
// and a digest the tag is latest.
func Parse(s string) (Reference, error) {
	refuse := func(format string, args ...any) (Reference, error) {
		return Reference{}, fmt.Errorf("image reference %q: %s", withoutUser(s), fmt.Sprintf(format, args...))
	}
	if len(s) > 4096 {
		return Reference{}, fmt.Errorf("image reference %q…: it is too long", s[:64])
	}
	scheme, rest, ok := strings.Cut(s, ":")
	if !ok {
		return refuse("it has no scheme; write %s", referenceHelp)
	}
	var r Reference
	var err error
	switch scheme {
	case "docker":
		r, err = parseDocker(rest)
	case "oci":
		r, err = parseLayout(rest)
	case "preloaded", "precached":
		r = Reference{Scheme: SchemePreloaded, Name: strings.TrimPrefix(rest, "//")}
		if !IsStackName(r.Name) {
			err = fmt.Errorf("%q is not a valid stack name", r.Name)
		}
	default:
		return refuse("its scheme is none of docker, oci and preloaded; write %s", referenceHelp)
	}
	if err != nil {
		return refuse("%v", err)
	}
	return r, nil
}

// SplitScheme returns what a cell must offer for a RootFS: the name of a preloaded stack, or else the scheme. It does not
// check the rest.
func SplitScheme(s string) (scheme Scheme, name string) {
	before, name, _ := strings.Cut(s, ":")
	if scheme = Scheme(before); before == "precached" {
		scheme = SchemePreloaded
	}
	return scheme, strings.TrimPrefix(name, "//")
}

// withoutUser hides the user and password of what looks like a URL.
func withoutUser(s string) string {
	scheme, rest, ok := strings.Cut(s, "://")
	user, host, has := strings.Cut(rest, "@")
	if !ok || !has || strings.ContainsAny(user, "/#") {
		return s
	}
	return scheme + "://***@" + host
}

func parseLayout(rest string) (Reference, error) {
	if !path.IsAbs(rest) || path.Clean(rest) == "/" || strings.ContainsRune(rest, 0) {
		return Reference{}, fmt.Errorf("%q is not an absolute path of a directory", rest)
	}
	return Reference{Scheme: SchemeOCI, Name: path.Clean(rest)}, nil
}

func parseDocker(rest string) (Reference, error) {
	r := Reference{Scheme: SchemeDocker, Host: dockerHub}
	rest, ok := strings.CutPrefix(rest, "//")
	switch {
	case !ok:
		return r, fmt.Errorf("write %s", referenceHelp)
	case rest == "" || rest == "/":
		return r, fmt.Errorf("it names no image")
	case strings.ContainsAny(rest, "?"):
		return r, fmt.Errorf("it has a query")
	}
	rest, fragment, hasFragment := strings.Cut(rest, "#")
	rest, digest, hasDigest := strings.Cut(rest, "@")
	if hasDigest && strings.Contains(digest, "/") {
		return r, fmt.Errorf("give user names and passwords as credentials, not in the reference")
	}
	host, repo, ok := strings.Cut(rest, "/")
	if !ok || host != "" && !isHost(host) {
		host, repo = "", rest
	}
	repo, tag, hasTag := strings.Cut(repo, ":")
	if hasTag && hasFragment {
		return r, fmt.Errorf("it has two tags, %q and %q", tag, fragment)
	}
	if hasFragment {
		tag, hasTag = fragment, true
	}
	r.Repository, r.Tag, r.Digest = repo, tag, digest
	if host != "" {
		r.Host = strings.ToLower(host)
	}
	if !hasTag && !hasDigest {
		r.Tag = defaultTag
	}
	if hasTag && tag == "" {
		return r, fmt.Errorf("the tag is empty")
	}
	if hasDigest && digest == "" {
		return r, fmt.Errorf("the digest is empty")
	}
	return r.canonical()
}

func isHost(s string) bool { return s == "localhost" || strings.ContainsAny(s, ".:") }

// The grammar of docker's and OCI's references.
var (
	repositoryParts = pattern.Lazy(`^[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*$`)
	registryHosts   = pattern.Lazy(`^(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*|\[[0-9a-f:.]+\])(?::([0-9]{1,5}))?$`)
	tags            = pattern.Lazy(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$`)
	digests         = pattern.Lazy(`^sha256:[0-9a-f]{64}$`)
	stackNames      = pattern.Lazy(`^[a-zA-Z0-9][a-zA-Z0-9_.-]{0,62}$`)
)

// IsDigest reports whether s is sha256: and 64 lower-case hex digits.
func IsDigest(s string) bool { return digests().MatchString(s) }

// IsStackName reports whether a stack may have the name s.
func IsStackName(s string) bool { return stackNames().MatchString(s) }

// canonical checks the parts of an image's name and spells Docker Hub in one way.
func (r Reference) canonical() (Reference, error) {
	m := registryHosts().FindStringSubmatch(r.Host)
	if m == nil {
		return r, fmt.Errorf("%q is not a valid registry host", r.Host)
	}
	if port, _ := strconv.Atoi(m[1]); m[1] != "" && (port == 0 || port > 65535) {
		return r, fmt.Errorf("%q is not a valid port", m[1])
	}
	if hubHosts[r.Host] {
		r.Host = dockerHub
	}
	if len(r.Repository) > 255 {
		return r, fmt.Errorf("the name is longer than 255 characters")
	}
	for part := range strings.SplitSeq(r.Repository, "/") {
		if !repositoryParts().MatchString(part) {
			return r, fmt.Errorf("the name %q is not valid: it must be lower-case letters and digits, with '.', '_' and '-' only between those, and '/' only between its parts", r.Repository)
		}
	}
	if r.Host == dockerHub && !strings.Contains(r.Repository, "/") {
		r.Repository = "library/" + r.Repository
	}
	if r.Tag != "" && !tags().MatchString(r.Tag) {
		return r, fmt.Errorf("the tag %q is not valid: it must be up to 128 letters, digits, '_', '.' and '-', and begin with none of the last two", r.Tag)
	}
	if r.Digest != "" && !digests().MatchString(r.Digest) {
		return r, fmt.Errorf("the digest %q is not sha256: and 64 lower-case hex digits", r.Digest)
	}
	if _, err := name.NewRepository(r.Host + "/" + r.Repository); err != nil {
		return r, fmt.Errorf("%v", err)
	}
	return r, nil
}

// String spells the reference in full; Parse reads it back to the same one.
func (r Reference) String() string {
	if r.Scheme != SchemeDocker {
		return string(r.Scheme) + ":" + r.Name
	}
	s := "docker://" + r.Host + "/" + r.Repository
	if r.Tag != "" {
		s += ":" + r.Tag
	}
	if r.Digest != "" {
		s += "@" + r.Digest
	}
	return s
}

// WithDigest returns the reference to exactly one image, which is what the tag meant.
func (r Reference) WithDigest(digest string) Reference {
	r.Digest = digest
	return r
}

// WithoutDigest returns the reference by its tag, if it has one.
func (r Reference) WithoutDigest() Reference {
	if r.Tag != "" {
		r.Digest = ""
	}
	return r
}

// TagOrDigest is what a registry is asked for: the digest, or else the tag.
func (r Reference) TagOrDigest() string {
	if r.Digest != "" {
		return r.Digest
	}
	return r.Tag
}

// Repo is the repository of an image with its host, or the directory of a layout.
func (r Reference) Repo() string {
	if r.Scheme == SchemeOCI {
		return r.String()
	}
	return r.Host + "/" + r.Repository
}

// hubHosts are Docker Hub's names, in references and in stores of credentials.
var hubHosts = map[string]bool{dockerHub: true, "index.docker.io": true, "registry-1.docker.io": true, "registry.hub.docker.com": true, "hub.docker.com": true}
