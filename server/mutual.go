package server

import (
	"crypto/tls"
	"crypto/x509"
	"sync"
)

// guarding has the HTTPS listener, which speaks as base otherwise, want a
// certificate of an app's instance for a domain whose routes have policies, and
// show one of that domain's own.
func (d *daemon) guarding(base *tls.Config) *tls.Config {
	base.NextProtos = []string{"h2", "http/1.1"}
	m := &mutual{daemon: d, certs: map[string]*renewed[*tls.Certificate]{}}
	c := base.Clone()
	c.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		domain, ok := d.router.Guards(hello.ServerName)
		if !ok {
			return nil, nil // base
		}
		return m.config(base, domain)
	}
	return c
}

// mutual keeps the certificates of domains that want some of their callers.
type mutual struct {
	daemon *daemon

	mu    sync.Mutex
	certs map[string]*renewed[*tls.Certificate]
}

func (m *mutual) config(base *tls.Config, domain string) (*tls.Config, error) {
	cert, err := m.certificate(domain)
	if err != nil {
		return nil, err
	}
	c := base.Clone()
	c.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return cert, nil }
	c.ClientAuth, c.ClientCAs = tls.RequireAndVerifyClientCert, x509.NewCertPool()
	c.ClientCAs.AppendCertsFromPEM(m.daemon.identities.Certificate()) // of now: authorities are renewed
	c.SessionTicketsDisabled = true                                   // a session would outlive its certificate
	return c, nil
}

func (m *mutual) certificate(domain string) (*tls.Certificate, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.certs[domain] == nil {
		made, err := newRenewed(httpsRenewal, func() (*tls.Certificate, error) {
			return m.daemon.certificateFor([]string{domain, "*." + domain}, nil)
		}, m.daemon.Log)
		if err != nil {
			return nil, err
		}
		m.certs[domain] = made
	}
	return m.certs[domain].get(), nil
}
