package certs

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"

	"cupola/runtime/fault"
	"cupola/server/acme"
	"cupola/store"
	"cupola/store/cf"
)

// Config is what a Source is made of.
type Config struct {
	Local *Local
	Store *store.Store
	Files Files
	// Routed reports whether a route leads from a host to an app.
	Routed func(host string) bool
	// ACME says how to get certificates from an ACME server; the Source sets Given.
	ACME acme.Config
	Log  *slog.Logger
}

// Source chooses certificates. It is safe for concurrent use.
type Source struct {
	Config
	rows atomic.Pointer[rows]
	file atomic.Pointer[tls.Certificate] // of Files; nil: there is none
	acme *acme.Manager                   // nil: there is none

	filesMu sync.Mutex
	files   Files // those of Config, or of the last Use
	seen    stamp // of files, at the last look
}

// rows are what the store says about certificates.
type rows struct {
	domains map[string]bool // the names of domains with HTTP routes
	given   map[string]*tls.Certificate
}

// New reads the files of the default certificate, and makes the system's own.
func New(c Config) (s *Source, err error) {
	s = &Source{Config: c, files: c.Files}
	s.rows.Store(&rows{})
	if _, err := c.Local.own(""); err != nil {
		return nil, err
	}
	if c.ACME.Enabled {
		s.ACME.Given = func(name string) bool { return s.given(strings.Replace(name, "*", "any", 1)) != nil }
		if s.acme, err = acme.New(s.ACME); err != nil {
			return nil, err
		}
	}
	pair, err := s.files.Read()
	if err == nil {
		s.Use(pair)
	}
	return s, err
}

// Set reads the domains and their certificates once. What it begins with an ACME server
// goes on until ctx ends.
func (s *Source) Set(ctx context.Context) error {
	if err := store.DeriveOnce(ctx, s.Store, s.read, s.use); err != nil || s.acme == nil {
		return err
	}
	return s.acme.Set(ctx)
}

// Run follows changes of the rows and of the files until ctx ends.
func (s *Source) Run(ctx context.Context) error {
	group, ctx := fault.NewGroup(ctx)
	group.Go(fault.ErrFunc("certificates", func() error { return s.follow(ctx) }))
	if s.acme != nil {
		group.Go(fault.ErrFunc("acme", func() error { return s.acme.Run(ctx) }))
	}
	return group.Wait()
}

func (s *Source) follow(ctx context.Context) error {
	return store.Derive(ctx, s.Store, store.Derivation[*rows]{Name: "certificates", Read: s.read, Use: store.Always(func(ctx context.Context, r *rows) error {
		s.refreshFiles()
		return s.use(ctx, r)
	}), Tick: filesInterval, Log: s.Log})
}

func (s *Source) use(_ context.Context, r *rows) error {
	s.rows.Store(r)
	return nil
}

func (s *Source) read(tx *store.Tx) (*rows, error) {
	r := &rows{domains: map[string]bool{}, given: map[string]*tls.Certificate{}}
	domains, err := store.Domains.All(tx)
	if err != nil {
		return nil, err
	}
	names := map[string]string{}
	for _, d := range domains {
		if d.Internal || d.TCP() {
			continue
		}
		names[d.GUID] = strings.ToLower(d.Name)
		r.domains[names[d.GUID]] = true
	}
	all, err := store.DomainCertificates.All(tx)
	if err != nil {
		return nil, err
	}
	for _, c := range all {
		pair, err := cf.ParsePair(c.Certificate, c.Key)
		if err != nil {
			if err := store.DomainCertificates.LeaveOut(tx, c, c.GUID, fmt.Errorf("certificate: %w", err)); err != nil {
				return nil, err
			}
			continue
		}
		if name := names[c.GUID]; name != "" {
			r.given[name] = pair
		}
	}
	return r, nil
}

// Get is the GetCertificate of the listeners.
func (s *Source) Get(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	name := strings.ToLower(strings.TrimSuffix(hello.ServerName, "."))
	if c := s.given(name); c != nil {
		return c, nil
	}
	if s.acme != nil {
		if c := s.acme.Issued(name); c != nil {
			return c, nil
		}
	}
	if names := s.subjects(name); names != nil {
		return s.Local.of(names)
	}
	if c := s.file.Load(); c != nil {
		return c, nil
	}
	return s.Local.own(name)
}

// given returns the certificate that a user or operator gave for a name: of the nearest
// domain above it first, then the one of Files.
func (s *Source) given(name string) *tls.Certificate {
	r := s.rows.Load()
	for domain := name; domain != ""; _, domain, _ = strings.Cut(domain, ".") {
		if c := r.given[domain]; c != nil && c.Leaf.VerifyHostname(name) == nil {
			return c
		}
	}
	if c := s.file.Load(); c != nil && name != "" && c.Leaf.VerifyHostname(name) == nil {
		return c
	}
	return nil
}

// subjects returns the names of the CA's certificate for a name; nil for a name that is
// not mapped, or is the system's. Hosts of one domain share a wildcard, unless the domain
// is a top-level one, below which clients accept no wildcard.
func (s *Source) subjects(name string) []string {
	domains := s.rows.Load().domains
	_, parent, _ := strings.Cut(name, ".")
	switch {
	case name == "" || name == "localhost" || name == s.Local.Domain || cf.IsSystemHost(name, s.Local.Domain):
		return nil
	case domains[parent] && strings.Contains(parent, "."):
		return []string{parent, "*." + parent}
	case domains[name] && strings.Contains(name, "."):
		return []string{name, "*." + name}
	case s.Routed(name):
		return []string{name}
	}
	return nil
}

// ServeChallenge answers the request of an ACME server that validates a name, and reports
// whether it was one.
func (s *Source) ServeChallenge(w http.ResponseWriter, r *http.Request) bool {
	return s.acme != nil && s.acme.ServeChallenge(w, r)
}

// Pending reports whether an ACME server may validate a host now.
func (s *Source) Pending(host string) bool { return s.acme != nil && s.acme.Pending(host) }

// Status counts the names that get certificates from an ACME server; ok is false where
// none is configured; s may be nil.
func (s *Source) Status() (st acme.Status, ok bool) {
	if s == nil || s.acme == nil {
		return st, false
	}
	return s.acme.Status(), true
}
