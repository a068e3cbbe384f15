package front

import (
	"crypto/tls"
	"crypto/x509"
	"sync"

	"cupola/runtime/authority"
)

// mutual keeps the certificates of domains that want some of their callers.
type mutual struct {
	*Certificates
	guards  func(serverName string) (domain string, ok bool)
	callers func() []byte // whom to trust, now: authorities are renewed

	mu    sync.Mutex
	certs map[string]*authority.Renewed[*tls.Certificate]
}

// guarding has the HTTPS listener, which speaks as base otherwise, want a
// certificate of an app's instance for a domain whose routes have policies, and
// show one of that domain's own.
func (m *mutual) guarding(base *tls.Config) *tls.Config {
	base.NextProtos = []string{"h2", "http/1.1"}
	c := base.Clone()
	c.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		domain, ok := m.guards(hello.ServerName)
		if !ok {
			return nil, nil // base
		}
		return m.config(base, domain)
	}
	return c
}

func (m *mutual) config(base *tls.Config, domain string) (*tls.Config, error) {
	cert, err := m.certificate(domain)
	if err != nil {
		return nil, err
	}
	c := base.Clone()
	c.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return cert, nil }
	c.ClientAuth, c.ClientCAs = tls.RequireAndVerifyClientCert, x509.NewCertPool()
	c.ClientCAs.AppendCertsFromPEM(m.callers())
	c.SessionTicketsDisabled = true // a session would outlive its certificate
	return c, nil
}

func (m *mutual) certificate(domain string) (*tls.Certificate, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.certs[domain] == nil {
		made, err := authority.NewRenewed(httpsRenewal, func() (*tls.Certificate, error) {
			return m.make([]string{domain, "*." + domain}, nil)
		}, m.Log)
		if err != nil {
			return nil, err
		}
		m.certs[domain] = made
	}
	return m.certs[domain].Get(), nil
}
