package server

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"net"
	"time"

	"cupola/runtime/authority"
)

// authority is the CA of this machine, which is made at the first start. Its key
// lies in the database's directory, which only root may enter.
func (d *daemon) authority() (*authority.Authority, error) {
	return authority.Open(authority.Config{CertFile: d.dir.Path("ca.pem"), KeyFile: d.dir.Path("db", "ca.key"), Name: "cupola CA"})
}

// httpsRenewal is how often the certificate of the HTTPS listener, which is good
// for a year, is made anew.
const httpsRenewal = 30 * 24 * time.Hour

// httpsTLS is how the HTTPS listener speaks.
func (d *daemon) httpsTLS() (*tls.Config, error) {
	cert, err := newRenewed(httpsRenewal, d.certificate, d.Log)
	if err != nil {
		return nil, err
	}
	return d.guarding(&tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return cert.get(), nil }}), nil
}

// certificate makes a certificate of the HTTPS listener, signed by the CA of
// this machine. A client that is given <data>/ca.pem trusts it.
func (d *daemon) certificate() (*tls.Certificate, error) {
	return d.certificateFor([]string{d.APIHost(), "localhost", d.Domain, "*." + d.Domain}, addresses())
}

// certificateFor makes one for names, the first of which is its subject, and
// addresses.
func (d *daemon) certificateFor(names []string, ips []net.IP) (*tls.Certificate, error) {
	ca, err := d.authority()
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

// addresses are those of this machine, under which the API may be asked for.
func addresses() []net.IP {
	ips := []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}
	found, _ := net.InterfaceAddrs()
	for _, a := range found {
		if n, ok := a.(*net.IPNet); ok && !n.IP.IsLoopback() && !n.IP.IsLinkLocalUnicast() {
			ips = append(ips, n.IP)
		}
	}
	return ips
}
