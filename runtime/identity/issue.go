package identity

import (
	"bytes"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"net"
	"net/netip"
	"time"
)

// DefaultLife is how long a certificate is good for in Diego.
const DefaultLife = 24 * time.Hour

// maxRenewal is Diego's time before the end of a certificate when it is
// replaced.
const maxRenewal = 30 * time.Minute

// RenewBefore is how long before its end a certificate is to be replaced.
func (a *Authority) RenewBefore() time.Duration { return min(maxRenewal, a.life/4) }

// skew is how far clocks may be apart.
const skew = 5 * time.Minute

// Subject is who a certificate is for.
type Subject struct {
	InstanceGUID string
	Address      netip.Addr
	// OrganizationalUnits say what it is an instance of: "app:<guid>", …
	OrganizationalUnits []string
}

// Credentials are a certificate and its key, as PEM. The certificate is followed
// by that of the authority. The key is RSA in PKCS #1, which Java's buildpack
// relies on.
type Credentials struct {
	Certificate, Key []byte
	NotAfter         time.Time
}

// Issue makes a key and a certificate.
func (a *Authority) Issue(s Subject) (Credentials, error) {
	key, err := a.keys.take()
	if err != nil {
		return Credentials{}, fmt.Errorf("make instance key: %w", err)
	}
	now := time.Now()
	cert := &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: s.InstanceGUID, OrganizationalUnit: s.OrganizationalUnits},
		NotBefore: now.Add(-skew), NotAfter: now.Add(a.life),
		DNSNames:    []string{s.InstanceGUID},
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment | x509.KeyUsageKeyAgreement,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	if s.Address.IsValid() {
		cert.IPAddresses = []net.IP{s.Address.AsSlice()}
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, a.cert, key.Public(), a.key)
	if err != nil {
		return Credentials{}, fmt.Errorf("sign instance certificate: %w", err)
	}
	leaf := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return Credentials{
		Certificate: bytes.Join([][]byte{leaf, a.text}, nil),
		Key:         pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}),
		NotAfter:    cert.NotAfter,
	}, nil
}
