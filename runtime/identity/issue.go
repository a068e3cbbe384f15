package identity

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"net"
	"net/netip"
	"time"

	"cupola/runtime/authority"
)

// DefaultLife is how long a certificate is good for in Diego.
const DefaultLife = 24 * time.Hour

// maxRenewal is Diego's time before the end of a certificate when it is
// replaced.
const maxRenewal = 30 * time.Minute

// RenewBefore is how long before it expires a certificate is renewed.
func (a *Authority) RenewBefore() time.Duration { return min(maxRenewal, a.life/4) }

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
	key, err := a.keys.next()
	if err != nil {
		return Credentials{}, fmt.Errorf("make instance key: %w", err)
	}
	until := time.Now().Add(a.life)
	cert := x509.Certificate{
		Subject:  pkix.Name{CommonName: s.InstanceGUID, OrganizationalUnit: s.OrganizationalUnits},
		NotAfter: until, DNSNames: []string{s.InstanceGUID},
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment | x509.KeyUsageKeyAgreement,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	if s.Address.IsValid() {
		cert.IPAddresses = []net.IP{s.Address.AsSlice()}
	}
	chain, err := a.ca.Issue(cert, key.Public())
	if err != nil {
		return Credentials{}, fmt.Errorf("sign instance certificate: %w", err)
	}
	return Credentials{
		Certificate: authority.PEM(chain...),
		Key:         pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}),
		NotAfter:    until,
	}, nil
}
