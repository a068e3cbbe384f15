package rootfs

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"cupola/rootfs/reference"
	"cupola/runtime/egress"
)

// Registries says how registries are spoken to. The zero value speaks TLS with those that the machine's CAs vouch for, and
// plain HTTP with loopback alone.
type Registries struct {
	// Mirrors are asked first, in order, for what is in the registry of a host ("docker.io"). They get no credentials.
	Mirrors map[string][]string
	// PlainHTTP are the hosts, with their ports, that may be spoken to without TLS.
	PlainHTTP []string
	RootCAs   *x509.CertPool // nil: the machine's
	// Guard decides where a registry may be that a user named, and what it leads to. Those that are named here, and those
	// of a pull that is Trusted, are an operator's own affair. Nil takes all for an operator's.
	Guard *egress.Guard
}

// Auth is what a registry wants to know. The zero value is nobody.
type Auth struct{ Username, Password string }

// What a registry said of an image, beside being unreachable.
var (
	ErrImageDenied  = errors.New("the registry refuses access: the image is private or the credentials are wrong")
	ErrImageMissing = errors.New("the registry has no such image")
)

// client speaks to registries.
type client struct {
	cfg     Registries
	users   http.RoundTripper // for registries that users name
	trusted http.RoundTripper // for those that operators name
	answer  time.Duration     // until an answer begins
}

func newClient(cfg Registries) *client {
	return newClientThatWaits(cfg, 30*time.Second)
}

// newClientThatWaits is newClient for requests whose answers begin so long after they were sent.
func newClientThatWaits(cfg Registries, answer time.Duration) *client {
	c := &client{cfg: cfg, answer: answer}
	operators := egress.Guard{Operator: true}
	c.trusted = c.transport(operators)
	if c.users = c.trusted; cfg.Guard != nil {
		c.users = c.transport(*cfg.Guard)
	}
	return c
}

// transport connects where a guard allows.
func (c *client) transport(by egress.Guard) http.RoundTripper {
	t := by.Transport(10 * time.Second)
	t.TLSClientConfig = &tls.Config{RootCAs: c.cfg.RootCAs, MinVersion: tls.VersionTLS12}
	t.TLSHandshakeTimeout = 10 * time.Second
	t.ResponseHeaderTimeout = c.answer
	t.IdleConnTimeout = 30 * time.Second
	t.ForceAttemptHTTP2 = true
	t.DisableCompression = true // blobs have the digest of what is sent
	return guarded{t, c.plainAllowed}
}

// plainAllowed tells whether host may be spoken to without TLS.
func (c *client) plainAllowed(host string) bool {
	if c.named(host) {
		return true
	}
	h := (&url.URL{Host: host}).Hostname()
	ip := net.ParseIP(h)
	return h == "localhost" || ip != nil && ip.IsLoopback()
}

// named tells whether an operator named host as one to be spoken to without TLS.
func (c *client) named(host string) bool {
	return slices.ContainsFunc(c.cfg.PlainHTTP, func(h string) bool { return strings.EqualFold(h, host) })
}

// guarded refuses plain HTTP where it is not allowed, be it that a registry redirects to it.
type guarded struct {
	next    http.RoundTripper
	allowed func(host string) bool
}

// RoundTrip sends a request.
func (g guarded) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme != "https" && !g.allowed(r.URL.Host) {
		return nil, fmt.Errorf("%s is not to be spoken to without TLS", r.URL.Host)
	}
	return g.next.RoundTrip(r)
}

// source is one registry that an image may come from.
type source struct {
	repo   name.Repository
	client *http.Client // holds the credentials
}

// sources are where an image is looked for, in order: the mirrors, then the registry itself.
func (c *client) sources(at place) []func(context.Context) (source, error) {
	r := at.ref
	var all []func(context.Context) (source, error)
	for _, host := range c.cfg.Mirrors[r.Host] {
		m := r
		m.Host = strings.ToLower(host)
		all = append(all, func(ctx context.Context) (source, error) { return c.connect(ctx, m, Auth{}, c.trusted) })
	}
	by := c.users
	if at.trusted || c.named(r.Host) {
		by = c.trusted
	}
	return append(all, func(ctx context.Context) (source, error) { return c.connect(ctx, r, at.auth, by) })
}

// connect logs in to a registry, for reading one repository.
func (c *client) connect(ctx context.Context, r reference.Reference, auth Auth, by http.RoundTripper) (source, error) {
	repo, err := c.repository(r.Host + "/" + r.Repository)
	if err != nil {
		return source{}, err
	}
	rt, err := transport.NewWithContext(ctx, repo.Registry, auth.authenticator(), by, []string{repo.Scope(transport.PullScope)})
	if err != nil {
		return source{}, registryError(err)
	}
	return source{repo, &http.Client{Transport: rt}}, nil
}

// repository is one of a registry, as host/name.
func (c *client) repository(of string) (name.Repository, error) {
	var opts []name.Option
	if host, _, _ := strings.Cut(of, "/"); c.plainAllowed(host) {
		opts = append(opts, name.Insecure) // TLS is still tried first
	}
	return name.NewRepository(of, opts...)
}

func (a Auth) authenticator() authn.Authenticator {
	if a.Username == "" {
		return authn.Anonymous
	}
	return authn.FromConfig(authn.AuthConfig{Username: a.Username, Password: a.Password})
}

// do sends a request for something in the repository. The caller closes the body of an answer with one of the codes.
func (s source) do(ctx context.Context, method, what string, header http.Header, codes ...int) (*http.Response, error) {
	u := url.URL{Scheme: s.repo.Scheme(), Host: s.repo.RegistryStr(), Path: "/v2/" + s.repo.RepositoryStr() + "/" + what}
	req, err := http.NewRequestWithContext(ctx, method, u.String(), nil)
	if err != nil {
		return nil, err
	}
	req.Header = header
	res, err := s.client.Do(req)
	if err != nil {
		return nil, registryError(err)
	}
	if err := transport.CheckError(res, codes...); err != nil {
		return nil, errors.Join(registryError(err), res.Body.Close())
	}
	return res, nil
}

// documents are the media types of what describes an image, docker's and OCI's.
var documents = []string{
	"application/vnd.oci.image.index.v1+json", "application/vnd.oci.image.manifest.v1+json",
	"application/vnd.docker.distribution.manifest.list.v2+json", "application/vnd.docker.distribution.manifest.v2+json",
}

// manifest fetches the document of a tag or digest.
func (s source) manifest(ctx context.Context, tagOrDigest string) ([]byte, error) {
	res, err := s.do(ctx, http.MethodGet, "manifests/"+tagOrDigest, http.Header{"Accept": documents}, http.StatusOK)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, maxDocument+1))
	if err != nil {
		return nil, fmt.Errorf("read the manifest: %w", err)
	}
	if len(text) > maxDocument {
		return nil, fmt.Errorf("the manifest is larger than %d bytes", maxDocument)
	}
	return text, nil
}

// digest asks which digest a tag or digest has, without fetching anything where the registry can.
func (s source) digest(ctx context.Context, tagOrDigest string) (string, error) {
	res, err := s.do(ctx, http.MethodHead, "manifests/"+tagOrDigest, http.Header{"Accept": documents}, http.StatusOK)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	if d := res.Header.Get("Docker-Content-Digest"); reference.IsDigest(d) {
		return d, nil
	}
	text, err := s.manifest(ctx, tagOrDigest)
	return digestText(text), err
}

// registryError says what of an error is for people, and marks what callers tell apart.
func registryError(err error) error {
	if ce, ok := errors.AsType[*tls.CertificateVerificationError](err); ok { // not what it then says without TLS
		return ce
	}
	te, ok := errors.AsType[*transport.Error](err)
	if !ok {
		if ue, ok := errors.AsType[*url.Error](err); ok {
			return ue.Err // its URL may be signed
		}
		return err
	}
	var said []string
	for _, d := range te.Errors {
		said = append(said, strings.TrimSuffix(string(d.Code)+": "+d.Message, ": "))
	}
	text := strings.Join(said, "; ")
	if text == "" {
		text = fmt.Sprintf("it answers %d %s", te.StatusCode, http.StatusText(te.StatusCode))
	}
	switch te.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		return fmt.Errorf("%w (%s)", ErrImageDenied, text)
	case http.StatusNotFound:
		return fmt.Errorf("%w (%s)", ErrImageMissing, text)
	}
	return errors.New(text)
}
