// Package registry is a client of image registries: it resolves references, reads documents and blobs, and pushes images.
package registry

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"cupola/runtime/egress"
)

// Config says how to speak to registries. The zero value speaks TLS with those that the machine's CAs vouch for, and plain
// HTTP with loopback alone.
type Config struct {
	// Mirrors are asked first, in order, for what is in the registry of a host ("docker.io"). They get no credentials.
	Mirrors map[string][]string
	// PlainHTTP are the hosts, with their ports, that the client may speak to without TLS.
	PlainHTTP []string
	RootCAs   *x509.CertPool // nil: the machine's
	// Guard decides where a registry that a user named may be, and where it may redirect to. It does not apply to registries
	// that are named here, nor to a Place that is Trusted: an operator named those. Nil takes all for an operator's.
	Guard *egress.Guard
}

// Auth are the credentials for a registry: a user with a password, or a token that the registry takes as it is. The zero value is
// anonymous.
type Auth struct{ Username, Password, Token string }

// What a registry said of an image, besides being unreachable.
var (
	ErrDenied  = errors.New("the registry refuses access: the image is private or the credentials are wrong")
	ErrMissing = errors.New("the registry has no such image")
)

// Client speaks to registries.
type Client struct {
	cfg     Config
	users   http.RoundTripper // for registries that users name
	trusted http.RoundTripper // for those that operators name
	answer  time.Duration     // until an answer begins
}

// New makes a client for reading.
func New(cfg Config) *Client { return newClient(cfg, 30*time.Second) }

// newClient makes a client that waits so long for an answer to begin.
func newClient(cfg Config, answer time.Duration) *Client {
	c := &Client{cfg: cfg, answer: answer}
	operators := egress.Guard{Operator: true}
	c.trusted = c.transport(operators)
	if c.users = c.trusted; cfg.Guard != nil {
		c.users = c.transport(*cfg.Guard)
	}
	return c
}

// transport connects where a guard allows.
func (c *Client) transport(by egress.Guard) http.RoundTripper {
	t := by.Transport(10 * time.Second)
	t.TLSClientConfig = &tls.Config{RootCAs: c.cfg.RootCAs, MinVersion: tls.VersionTLS12}
	t.TLSHandshakeTimeout = 10 * time.Second
	t.ResponseHeaderTimeout = c.answer
	t.IdleConnTimeout = 30 * time.Second
	t.ForceAttemptHTTP2 = true
	t.DisableCompression = true // blobs have the digest of what is sent
	return guarded{t, c.plainAllowed}
}

// plainAllowed reports whether the client may speak to host without TLS.
func (c *Client) plainAllowed(host string) bool {
	if c.named(host) {
		return true
	}
	h := (&url.URL{Host: host}).Hostname()
	ip := net.ParseIP(h)
	return h == "localhost" || ip != nil && ip.IsLoopback()
}

// named reports whether an operator named host in PlainHTTP.
func (c *Client) named(host string) bool {
	return slices.ContainsFunc(c.cfg.PlainHTTP, func(h string) bool { return strings.EqualFold(h, host) })
}

// guarded refuses plain HTTP where it is not allowed, also when a registry redirects to it.
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

// repository is one of a registry, as host/name.
func (c *Client) repository(of string) (name.Repository, error) {
	var opts []name.Option
	if host, _, _ := strings.Cut(of, "/"); c.plainAllowed(host) {
		opts = append(opts, name.Insecure) // TLS is still tried first
	}
	return name.NewRepository(of, opts...)
}

func (a Auth) authenticator() authn.Authenticator {
	switch {
	case a.Token != "":
		return authn.FromConfig(authn.AuthConfig{RegistryToken: a.Token})
	case a.Username == "":
		return authn.Anonymous
	}
	return authn.FromConfig(authn.AuthConfig{Username: a.Username, Password: a.Password})
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
		return fmt.Errorf("%w (%s)", ErrDenied, text)
	case http.StatusNotFound:
		return fmt.Errorf("%w (%s)", ErrMissing, text)
	}
	return errors.New(text)
}
