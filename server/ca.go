package server

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"time"
)

// certificate gives the certificate of the HTTPS listener, signed by a CA of
// this machine's own that is made at the first start. A client that is given
// <data>/ca.pem trusts it.
func (h *house) certificate() (tls.Certificate, error) {
	ca, key, err := h.authority()
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("make the certificate authority: %w", err)
	}
	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	now := time.Now()
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: h.APIHost()}, NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(1, 0, 0),
		DNSNames:    []string{"localhost", h.Domain, "*." + h.Domain},
		IPAddresses: addresses(), KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, ca, &own.PublicKey, key)
	return tls.Certificate{Certificate: [][]byte{der, ca.Raw}, PrivateKey: own}, err
}

func serial() *big.Int {
	n, _ := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	return n
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

// authority reads the CA, or makes it. The key lies in the database's
// directory, which only root may enter.
func (h *house) authority() (*x509.Certificate, *ecdsa.PrivateKey, error) {
	cert, err := os.ReadFile(h.path("ca.pem"))
	if errors.Is(err, fs.ErrNotExist) {
		return h.newAuthority()
	}
	if err != nil {
		return nil, nil, err
	}
	key, err := os.ReadFile(h.path("db", "ca.key"))
	if err != nil {
		return nil, nil, err
	}
	cb, _ := pem.Decode(cert)
	kb, _ := pem.Decode(key)
	if cb == nil || kb == nil {
		return nil, nil, fmt.Errorf("%s or its key is no PEM: remove both for a new one", h.path("ca.pem"))
	}
	ca, err := x509.ParseCertificate(cb.Bytes)
	if err != nil {
		return nil, nil, err
	}
	k, err := x509.ParseECPrivateKey(kb.Bytes)
	return ca, k, err
}

func (h *house) newAuthority() (*x509.Certificate, *ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	now := time.Now()
	der, err := x509.CreateCertificate(rand.Reader, authorityTemplate(now), authorityTemplate(now), &key.PublicKey, key)
	if err != nil {
		return nil, nil, err
	}
	kder, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, nil, err
	}
	// The key first: a certificate without its key would be found at the next
	// start, and taken for whole.
	if err := replaceFile(h.path("db", "ca.key"), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: kder}), 0o600); err != nil {
		return nil, nil, err
	}
	if err := replaceFile(h.path("ca.pem"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o644); err != nil {
		return nil, nil, err
	}
	ca, err := x509.ParseCertificate(der)
	return ca, key, err
}

func authorityTemplate(now time.Time) *x509.Certificate {
	return &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "cupola CA", Organization: []string{"cupola"}},
		NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(10, 0, 0), IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign}
}
