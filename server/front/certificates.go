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
)

// Certificates makes the certificates of the HTTPS listener, which the CA of this
// machine signs.
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

// own makes the listener's. A client that is given <data>/ca.pem trusts it.
func (cs *Certificates) own() (*tls.Certificate, error) {
	return cs.make([]string{cs.APIHost, "localhost", cs.Domain, "*." + cs.Domain}, Addresses())
}

// make makes one for names, the first of which is its subject, and
// addresses.
func (cs *Certificates) make(names []string, ips []net.IP) (*tls.Certificate, error) {
	ca, err := cs.Authority()
	if err != nil {
		return nil, err
	}
	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	chain, err := ca.Issue(x509.Certificate{
		Subject: pkix.Name{CommonName: names[0]}, NotAfter: time.Now().AddDate(1, 0, 0),
		DNSNames:    names,
		IPAddresses: ips, KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, &own.PublicKey)
	if err != nil {
		return nil, fmt.Errorf("sign the certificate of the HTTPS listener: %w", err)
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
