package identity

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"cupola/runtime/authority"
)

// DefaultLife is how long a certificate is good for in Diego.
const DefaultLife = 24 * time.Hour

// maxRenewal is Diego's time before the end of a certificate when it is
// replaced.
const maxRenewal = 30 * time.Minute

// serverLives is how many lives of an instance's certificate one of a server is good for. It is renewed as often, so clients
// can verify the server as long when no daemon runs.
const serverLives = 30

// RenewBefore is how long before it expires a certificate is renewed.
func (a *Authority) RenewBefore() time.Duration { return min(maxRenewal, a.life/4) }

// RenewServerBefore is RenewBefore for a certificate of IssueServer.
func (a *Authority) RenewServerBefore() time.Duration {
	return (serverLives-1)*a.life + a.RenewBefore()
}

// Subject is who a certificate is for.
type Subject struct {
	InstanceGUID string
	Address      netip.Addr // may be none
	// OrganizationalUnits say what it is an instance of: "app:<guid>", …
	OrganizationalUnits []string
	// Names are DNS names besides the GUID.
	Names []string
}

// Credentials are a certificate and its key, as PEM. The certificate is followed
// by that of the authority. The key is RSA in PKCS #1, which Java's buildpack
// relies on.
type Credentials struct {
	Certificate, Key []byte
	NotAfter         time.Time
}

// Issue makes a certificate for a key. Instances with the same organizational units, which
// are an app's, share a key if they start within a minute: making one takes longer than all
// else of a start.
func (a *Authority) Issue(s Subject) (Credentials, error) {
	key, err := a.keys.next(strings.Join(s.OrganizationalUnits, "\n"))
	if err != nil {
		return Credentials{}, fmt.Errorf("make instance key: %w", err)
	}
	cert, until, err := a.certify(s, key.Public(), a.life)
	return Credentials{
		Certificate: cert,
		Key:         pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}),
		NotAfter:    until,
	}, err
}

// IssueLight is Issue with an ECDSA key, for what no app reads: making it costs next
// to nothing.
func (a *Authority) IssueLight(s Subject) (Credentials, error) { return a.issueECDSA(s, a.life) }

// IssueServer is IssueLight for what clients verify by the subject's names, for a longer time.
func (a *Authority) IssueServer(s Subject) (Credentials, error) {
	return a.issueECDSA(s, serverLives*a.life)
}

func (a *Authority) issueECDSA(s Subject, life time.Duration) (Credentials, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Credentials{}, fmt.Errorf("make instance key: %w", err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return Credentials{}, fmt.Errorf("encode instance key: %w", err)
	}
	cert, until, err := a.certify(s, key.Public(), life)
	return Credentials{Certificate: cert, Key: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), NotAfter: until}, err
}

// Certify makes a further certificate for the key of a certificate of an Issue.
func (a *Authority) Certify(s Subject, of []byte) (certificate []byte, err error) {
	block, _ := pem.Decode(of)
	if block == nil {
		return nil, errors.New("read instance certificate: it is not PEM")
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("read instance certificate: %w", err)
	}
	certificate, _, err = a.certify(s, cert.PublicKey, a.life)
	return certificate, err
}

func (a *Authority) certify(s Subject, key crypto.PublicKey, life time.Duration) (certificate []byte, until time.Time, err error) {
	until = time.Now().Add(life)
	cert := x509.Certificate{
		Subject:  pkix.Name{CommonName: s.InstanceGUID, OrganizationalUnit: s.OrganizationalUnits},
		NotAfter: until, DNSNames: append([]string{s.InstanceGUID}, s.Names...),
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment | x509.KeyUsageKeyAgreement,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	if s.Address.IsValid() {
		cert.IPAddresses = []net.IP{s.Address.AsSlice()}
	}
	chain, err := a.ca.Issue(cert, key)
	if err != nil {
		return nil, until, fmt.Errorf("sign instance certificate: %w", err)
	}
	return authority.PEM(chain...), until, nil
}
