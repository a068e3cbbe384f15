package front

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
	"time"

	"cupola/runtime/authority"
	"cupola/store/cf"
)

// Certificates makes the certificates of the HTTPS listener, and the router's for
// instances, which the CA of this machine signs.
type Certificates struct {
	Authority func() (*authority.Authority, error)
	APIHost   string
	Domain    string // of apps
	Log       *slog.Logger
}

// httpsRenewal is how often the certificate of the HTTPS listener, which is valid
// for a year, is renewed.
const httpsRenewal = 30 * 24 * time.Hour

// TLS is how the HTTPS listener speaks. For domains of routes with policies,
// which guards finds by the name that a client asks for, callers show a
// certificate of an app's instance: one of the authorities that callers gives.
func (cs *Certificates) TLS(guards func(serverName string) (domain string, ok bool), callers func() []byte) (*tls.Config, error) {
	cert, err := authority.NewRenewed(httpsRenewal, cs.own, cs.Log)
	if err != nil {
		return nil, err
	}
	m := &mutual{Certificates: cs, guards: guards, callers: callers, certs: map[string]*authority.Renewed[*tls.Certificate]{}}
	return m.guarding(&tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return cert.Get(), nil }}), nil
}

// RouterName is the name in the certificate that the router shows instances, as in
// cf-deployment.
const RouterName = "gorouter.service.cf.internal"

// Client returns the certificate of the router as a client of instances.
func (cs *Certificates) Client() (func() *tls.Certificate, error) {
	cert, err := authority.NewRenewed(httpsRenewal, func() (*tls.Certificate, error) {
		return cs.sign(x509.Certificate{DNSNames: []string{RouterName}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	}, cs.Log)
	return cert.Get, err
}

// own makes the listener's. A client that is given <data>/ca.pem trusts it. It names
// the system's hosts one by one: clients take no wildcard below a top-level domain,
// as *.localhost is.
func (cs *Certificates) own() (*tls.Certificate, error) {
	names := append([]string{cs.APIHost, "localhost", cs.Domain, "*." + cs.Domain}, cf.SystemNames(cs.Domain)...)
	return cs.make(names, Addresses())
}

// make makes one for names, the first of which is its subject, and
// addresses.
func (cs *Certificates) make(names []string, ips []net.IP) (*tls.Certificate, error) {
	return cs.sign(x509.Certificate{DNSNames: names, IPAddresses: ips, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
}

// sign makes a certificate from a template with names, and its key.
func (cs *Certificates) sign(c x509.Certificate) (*tls.Certificate, error) {
	ca, err := cs.Authority()
	if err != nil {
		return nil, err
	}
	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	c.Subject, c.NotAfter, c.KeyUsage = pkix.Name{CommonName: c.DNSNames[0]}, time.Now().AddDate(1, 0, 0), x509.KeyUsageDigitalSignature
	chain, err := ca.Issue(c, &own.PublicKey)
	if err != nil {
		return nil, fmt.Errorf("sign certificate for %s: %w", c.DNSNames[0], err)
	}
	return &tls.Certificate{Certificate: chain, PrivateKey: own}, nil
}

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
