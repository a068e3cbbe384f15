package certs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"cupola/runtime/authority"
	"cupola/store/cf"
)

// Local makes certificates that the CA of this machine signs. They are kept in
// memory, and made again after a restart.
type Local struct {
	Authority func() (*authority.Authority, error)
	APIHost   string
	Domain    string // of apps
	Log       *slog.Logger

	mu   sync.Mutex
	made map[string]*authority.Renewed[*tls.Certificate] // by their first name
}

// How long a certificate is valid, and after what time another replaces it.
const (
	localLife    = 90 * 24 * time.Hour
	localRenewal = 30 * 24 * time.Hour
)

// maxMade is how many certificates are kept in memory.
const maxMade = 4096

// RouterName is the name in the certificate that the router shows instances, as in
// cf-deployment.
const RouterName = "gorouter.service.cf.internal"

// Client returns the certificate of the router as a client of instances.
func (l *Local) Client() (func() *tls.Certificate, error) {
	cert, err := authority.NewRenewed(localRenewal, func() (*tls.Certificate, error) {
		return l.sign(x509.Certificate{DNSNames: []string{RouterName}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	}, l.Log)
	return cert.Get, err
}

// own returns the certificate of the system's hosts and localhost, for a client that
// names a host. It names the hosts one by one: clients accept no wildcard below a
// top-level domain, as *.localhost is. A client of an address names none: its
// certificate has the addresses of this machine, too, which a CA that is good for some
// domains alone may not sign.
func (l *Local) own(host string) (*tls.Certificate, error) {
	names := append([]string{l.APIHost, "localhost", l.Domain, "*." + l.Domain}, cf.SystemNames(l.Domain)...)
	if host != "" {
		return l.keep(l.APIHost, names, nil)
	}
	return l.keep("", names, Addresses())
}

// of returns a certificate for names; the first one is its key in memory.
func (l *Local) of(names []string) (*tls.Certificate, error) { return l.keep(names[0], names, nil) }

func (l *Local) keep(key string, names []string, ips []net.IP) (*tls.Certificate, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if kept := l.made[key]; kept != nil {
		return kept.Get(), nil
	}
	made, err := authority.NewRenewed(localRenewal, func() (*tls.Certificate, error) {
		return l.sign(x509.Certificate{DNSNames: names, IPAddresses: ips, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	}, l.Log)
	if err != nil {
		return nil, err
	}
	if l.made == nil || len(l.made) >= maxMade {
		l.made = map[string]*authority.Renewed[*tls.Certificate]{}
	}
	l.made[key] = made
	return made.Get(), nil
}

// sign makes a certificate from a template with names, and its key.
func (l *Local) sign(c x509.Certificate) (*tls.Certificate, error) {
	ca, err := l.Authority()
	if err != nil {
		return nil, err
	}
	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	c.NotAfter, c.KeyUsage = time.Now().Add(localLife), x509.KeyUsageDigitalSignature
	if len(c.DNSNames[0]) <= maxCommonName {
		c.Subject = pkix.Name{CommonName: c.DNSNames[0]}
	}
	chain, err := ca.Issue(c, &own.PublicKey)
	if err != nil {
		return nil, fmt.Errorf("sign certificate for %s: %w", c.DNSNames[0], err)
	}
	return &tls.Certificate{Certificate: chain, PrivateKey: own}, nil
}

// maxCommonName is the longest common name that X.509 allows; a DNS name may be longer.
const maxCommonName = 64

// Addresses are those of this machine, under which the API may be asked for.
func Addresses() []net.IP {
	ips := []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}
	found, _ := net.InterfaceAddrs()
	for _, a := range found {
		if n, ok := a.(*net.IPNet); ok && !n.IP.IsLoopback() && !n.IP.IsLinkLocalUnicast() {
			ips = append(ips, n.IP)
		}
	}
	return ips
}
