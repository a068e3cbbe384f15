package rootfs

import (
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
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
	Tag        string // of an image: "" only beside a Digest
	Digest     string // of an image: sha256:… or "", which Tag then decides
}

const (
	dockerHub     = "docker.io"
	defaultTag    = "latest"
	referenceHelp = "docker://host[:port]/namespace/name[:tag][@digest]"
)

// ParseReference reads docker://…, oci:DIR, preloaded:NAME and precached:NAME, the latter also with // before the name. In docker://a/b the first part is a
// registry's host if it holds a '.' or ':' or is localhost, as docker has it; otherwise, and in docker:///a/b, the image
// is on Docker Hub. The tag may also follow a '#', as Diego's references have it; without tag and digest it is latest.
func ParseReference(s string) (Reference, error) {
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
		if !stackNames.MatchString(r.Name) {
			err = fmt.Errorf("%q is no name of a stack", r.Name)
		}
	default:
		return refuse("its scheme is none of docker, oci and preloaded; write %s", referenceHelp)
	}
	if err != nil {
		return refuse("%v", err)
	}
	return r, nil
}

// SplitScheme tells what a cell must offer for a RootFS: the preloaded stack of a name, or else the scheme. It does not
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
		return Reference{}, fmt.Errorf("%q is no absolute path of a directory", rest)
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
	repositoryParts = regexp.MustCompile(`^[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*$`)
	registryHosts   = regexp.MustCompile(`^(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*|\[[0-9a-f:.]+\])(?::([0-9]{1,5}))?$`)
	tags            = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$`)
	digests         = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
)

// canonical checks the parts of an image's name and spells Docker Hub in one way.
func (r Reference) canonical() (Reference, error) {
	m := registryHosts.FindStringSubmatch(r.Host)
	if m == nil {
		return r, fmt.Errorf("%q is no host of a registry", r.Host)
	}
	if port, _ := strconv.Atoi(m[1]); m[1] != "" && (port == 0 || port > 65535) {
		return r, fmt.Errorf("%q is no port", m[1])
	}
	if hubHosts[r.Host] {
		r.Host = dockerHub
	}
	if len(r.Repository) > 255 {
		return r, fmt.Errorf("the name is longer than 255 characters")
	}
	for part := range strings.SplitSeq(r.Repository, "/") {
		if !repositoryParts.MatchString(part) {
			return r, fmt.Errorf("the name %q may hold lower-case letters, digits and, between those, '.', '_' and '-'", r.Repository)
		}
	}
	if r.Host == dockerHub && !strings.Contains(r.Repository, "/") {
		r.Repository = "library/" + r.Repository
	}
	if r.Tag != "" && !tags.MatchString(r.Tag) {
		return r, fmt.Errorf("the tag %q may hold up to 128 letters, digits, '_', '.' and '-'", r.Tag)
	}
	if r.Digest != "" && !digests.MatchString(r.Digest) {
		return r, fmt.Errorf("the digest %q is not sha256: and 64 lower-case hex digits", r.Digest)
	}
	_, err := r.repository()
	return r, err
}

// String spells the reference in full; ParseReference reads it back to the same one.
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

// Registry returns the host of an image's registry, with the port if the reference has one, as credentials are keyed by
// it; docker.io for Docker Hub, "" for what is in no registry.
func (r Reference) Registry() string { return r.Host }

// hubHosts are what Docker Hub is called as well, in references and by those who keep its credentials.
var hubHosts = map[string]bool{dockerHub: true, "index.docker.io": true, "registry-1.docker.io": true, "registry.hub.docker.com": true, "hub.docker.com": true}

// IsRegistry tells whether credentials kept under host are for the image's registry: the host as it stands in the
// reference, in any case, or another name of Docker Hub.
func (r Reference) IsRegistry(host string) bool {
	host = strings.ToLower(host)
	return host != "" && (host == r.Host || r.Host == dockerHub && hubHosts[host])
}

// repository is the reference's as the registry client has it.
func (r Reference) repository() (name.Repository, error) {
	repo, err := name.NewRepository(r.Host + "/" + r.Repository)
	if err != nil {
		return repo, fmt.Errorf("%v", err)
	}
	return repo, nil
}
