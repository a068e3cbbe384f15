package acme

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/caddyserver/certmagic"

	"cupola/store"
)

// Config is what a Manager is made of.
type Config struct {
	Flags
	Store  *store.Store
	Domain string // the system's
	// HTTP and HTTPS are the addresses of the listeners that answer challenges.
	HTTP, HTTPS string
	// Given reports whether a name has a certificate of a user or operator, so that none is needed.
	Given func(name string) bool
	// StatusFile is where failures are written for doctor.
	StatusFile string
	Log        *slog.Logger

	// Check is the time between looks at which certificates to renew; 0: 10 minutes.
	Check time.Duration
}

// Manager gets certificates and renews them. It is safe for concurrent use.
type Manager struct {
	Config
	magic  *certmagic.Config
	issuer *certmagic.ACMEIssuer
	cache  *certmagic.Cache

	mu     sync.Mutex
	names  map[string]*managed
	orders []order // that began in the last orderWindow
	failed int64   // attempts that failed since the start
}

// managed is a name that gets certificates.
type managed struct {
	org     string // "": it is the system's
	cancel  func() // ends the attempts to get the first
	pending bool   // an order is under way
	failure string // why the last attempt failed; "" if it did not
	at      time.Time
}

// New makes a Manager, which does nothing until Set.
func New(c Config) (*Manager, error) {
	roots, err := c.roots()
	if err != nil {
		return nil, err
	}
	m := &Manager{Config: c, names: map[string]*managed{}}
	logger := newLogger(c.Log)
	m.cache = certmagic.NewCache(certmagic.CacheOptions{
		GetConfigForCert:   func(certmagic.Certificate) (*certmagic.Config, error) { return m.magic, nil },
		RenewCheckInterval: c.Check, Logger: logger,
	})
	m.magic = certmagic.New(m.cache, certmagic.Config{
		Storage: newStorage(c.Store), OnEvent: m.event, Logger: logger,
		OCSP: certmagic.OCSPConfig{DisableStapling: true}, // it would ask the network whenever a certificate is loaded
	})
	issuer := certmagic.ACMEIssuer{CA: c.Directory, Email: c.Email, Agreed: true, TrustedRoots: roots, Logger: logger}
	issuer.ListenHost, issuer.AltHTTPPort = hostPort(c.HTTP)
	_, issuer.AltTLSALPNPort = hostPort(c.HTTPS)
	if c.DNSHook != "" {
		issuer.DNS01Solver = hook{c.DNSHook}
	}
	m.issuer = certmagic.NewACMEIssuer(m.magic, issuer)
	m.magic.Issuers = []certmagic.Issuer{m.issuer}
	return m, nil
}

// hostPort splits an address that was listened at.
func hostPort(address string) (host string, port int) {
	host, text, _ := net.SplitHostPort(address)
	port, _ = strconv.Atoi(text)
	return host, port
}

// Set manages the names that the rows have now: it loads the certificates that are in
// the store, and begins to get the others. ctx ends all of it.
func (m *Manager) Set(ctx context.Context) error {
	return store.DeriveOnce(ctx, m.Store, m.read, m.use)
}

// Run follows the rows until ctx ends.
func (m *Manager) Run(ctx context.Context) error {
	defer m.cache.Stop()
	return store.Derive(ctx, m.Store, store.Derivation[[]wanted]{Name: "acme", Read: m.read, Use: store.Always(m.use), Log: m.Log})
}

func (m *Manager) read(tx *store.Tx) ([]wanted, error) {
	return names(tx, m.Domain, m.DNSHook != "")
}

// use begins to manage names and forgets those that are no longer wanted.
func (m *Manager) use(ctx context.Context, all []wanted) error {
	all = slices.DeleteFunc(slices.Clone(all), func(w wanted) bool { return m.Given(w.name) })
	stays := map[string]bool{}
	for _, w := range all {
		stays[w.name] = true
	}
	for _, name := range m.forget(func(name string) bool { return !stays[name] }) {
		m.cache.RemoveManaged([]certmagic.SubjectIssuer{{Subject: name}})
	}
	var faults []error
	for _, w := range all {
		own, known := m.begin(ctx, w)
		if known {
			continue
		}
		if err := m.manage(own, w.name); err != nil {
			m.forget(func(name string) bool { return name == w.name }) // to try again
			faults = append(faults, fmt.Errorf("certificate for %s: %w", w.name, err))
		}
	}
	return errors.Join(append(faults, m.writeStatus())...)
}

// manage loads the certificate of a name, if it is in the store, so that the first client gets it, and begins to get it
// otherwise. One that must be renewed is left to certmagic, which loads it a moment later.
func (m *Manager) manage(ctx context.Context, name string) error {
	kept, err := m.magic.CacheManagedCertificate(ctx, name)
	switch {
	case err == nil && kept.NeedsRenewal(m.magic):
		m.cache.RemoveManaged([]certmagic.SubjectIssuer{{Subject: name}})
	case err == nil || !errors.Is(err, fs.ErrNotExist):
		return err
	}
	return m.magic.ManageAsync(ctx, []string{name})
}

// begin notes a name; known tells that it was noted before.
func (m *Manager) begin(ctx context.Context, w wanted) (own context.Context, known bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.names[w.name] != nil {
		return nil, true
	}
	own, cancel := context.WithCancel(ctx)
	m.names[w.name] = &managed{org: w.org, cancel: cancel}
	return own, false
}

// forget ends what is under way for some names, and returns these.
func (m *Manager) forget(these func(name string) bool) (gone []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name, n := range m.names {
		if these(name) {
			n.cancel()
			delete(m.names, name)
			gone = append(gone, name)
		}
	}
	return gone
}

// At most maxOrders orders begin in orderWindow: a third of what Let's Encrypt takes of
// one account. At most maxOrgOrders are of one org, so that none uses up the others'.
// Names beyond wait.
const (
	maxOrders    = 100
	maxOrgOrders = 50
	orderWindow  = 3 * time.Hour
)

// order is an order that began.
type order struct {
	at  time.Time
	org string
}

// errNotWanted ends the attempts for a name.
var errNotWanted = certmagic.ErrNoRetry{Err: errors.New("no route has the name any more, or a certificate was given for it")}

// event follows what certmagic does, and decides whether an order may begin.
func (m *Manager) event(_ context.Context, what string, data map[string]any) error {
	name, _ := data["identifier"].(string)
	m.mu.Lock()
	n := m.names[name]
	var err error
	switch {
	case what == "cert_obtaining" && n == nil:
		err = errNotWanted
	case n == nil:
	case what == "cert_obtaining":
		err = m.orderLocked(n)
	case what == "cert_obtained":
		n.pending, n.failure = false, ""
	case what == "cert_failed":
		fault, _ := data["error"].(error)
		n.pending, n.failure, n.at = false, strings.TrimPrefix(fmt.Sprint(fault), "["+name+"] "), time.Now()
		m.failed++
	}
	m.mu.Unlock()
	switch what {
	case "cert_obtained":
		m.Log.Info("got a certificate by ACME", "name", name, "renewal", data["renewal"])
	case "cert_failed":
		m.Log.Error("got no certificate by ACME; it is tried again later", "name", name, "renewal", data["renewal"], "err", data["error"])
	default:
		return err
	}
	return errors.Join(err, m.writeStatus())
}

// orderLocked counts an order, unless there were too many.
func (m *Manager) orderLocked(n *managed) error {
	since := time.Now().Add(-orderWindow)
	m.orders = slices.DeleteFunc(m.orders, func(o order) bool { return o.at.Before(since) })
	own := 0
	for _, o := range m.orders {
		if o.org == n.org && n.org != "" {
			own++
		}
	}
	if len(m.orders) >= maxOrders || own >= maxOrgOrders {
		n.failure, n.at = fmt.Sprintf("waits: %d certificates, %d of the org, were ordered in the last %d hours", len(m.orders), own, int(orderWindow.Hours())), time.Now()
		return errors.New(n.failure)
	}
	m.orders = append(m.orders, order{time.Now(), n.org})
	n.pending = true
	return nil
}

// Issued returns the certificate for a name; nil if there is none that is valid.
func (m *Manager) Issued(name string) *tls.Certificate {
	now := time.Now()
	var best *certmagic.Certificate
	for _, c := range m.cache.AllMatchingCertificates(name) {
		if c.Leaf != nil && now.Before(c.Leaf.NotAfter) && (best == nil || c.Leaf.NotAfter.After(best.Leaf.NotAfter)) {
			best = &c
		}
	}
	if best == nil {
		return nil
	}
	return &best.Certificate
}

// TLSProtocol is what a server that validates a name by TLS-ALPN-01 speaks (RFC 8737).
const TLSProtocol = "acme-tls/1"

// IsChallenge reports whether a client validates a name by TLS-ALPN-01.
func IsChallenge(hello *tls.ClientHelloInfo) bool {
	return len(hello.SupportedProtos) == 1 && hello.SupportedProtos[0] == TLSProtocol
}

// Challenge returns the certificate that answers a challenge by TLS-ALPN-01.
func (m *Manager) Challenge(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	return m.magic.GetCertificate(hello)
}

// Pending reports whether an order for a host is under way, so that challenges may come.
func (m *Manager) Pending(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.names[strings.ToLower(host)]
	return n != nil && n.pending
}

// ServeChallenge answers a challenge by HTTP-01, and reports whether it did.
func (m *Manager) ServeChallenge(w http.ResponseWriter, r *http.Request) bool {
	return strings.HasPrefix(r.URL.Path, "/.well-known/acme-challenge/") && m.Pending(r.Host) && m.issuer.HandleHTTPChallenge(w, r)
}
