package authority

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"cupola/runtime/durable"
)

// How long an authority is good for, and how long before its end it is renewed:
// longer than what it signs lives.
const (
	life        = 10 * 365 * 24 * time.Hour
	renewBefore = 3 * 365 * 24 * time.Hour
)

// skew is how far clocks may be apart: certificates begin so much in the past.
const skew = time.Hour

// Config says which authority is meant. All is required.
type Config struct {
	CertFile string // its certificate, and those before it: what to trust
	KeyFile  string // made 0600
	Name     string // of one that is made: its common name
}

// Authority signs certificates. It is safe for concurrent use.
type Authority struct {
	cfg Config
	key *ecdsa.PrivateKey

	mu    sync.Mutex
	certs []*x509.Certificate // its own, newest first
}

// Open reads an authority. It makes one where a file is missing, and renews one
// that nears its end.
func Open(c Config) (*Authority, error) {
	a := &Authority{cfg: c}
	err := a.read()
	if errors.Is(err, fs.ErrNotExist) {
		err = a.create()
	}
	if err == nil {
		_, err = a.current()
	}
	if err != nil {
		return nil, fmt.Errorf("certificate authority %s: %w", c.CertFile, err)
	}
	return a, nil
}

// Trust is what to trust, in PEM: its certificate, followed by those of its
// earlier ones that have not ended.
func (a *Authority) Trust() []byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	return encodeCertificates(a.certs)
}

// Issue signs a certificate for a key. A template without a serial number gets a
// random one; one that does not say since when it is good is so since skew. The
// chain is the certificate and that of the authority, in DER.
func (a *Authority) Issue(template x509.Certificate, key crypto.PublicKey) (chain [][]byte, err error) {
	issuer, err := a.current()
	if err != nil {
		return nil, fmt.Errorf("renew certificate authority %s: %w", a.cfg.CertFile, err)
	}
	if template.SerialNumber == nil {
		template.SerialNumber = serial()
	}
	if template.NotBefore.IsZero() {
		template.NotBefore = time.Now().Add(-skew)
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, issuer, key, a.key)
	return [][]byte{der, issuer.Raw}, err
}

// Issued reports whether a certificate is one of the authority's.
func (a *Authority) Issued(c *x509.Certificate) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return c.CheckSignatureFrom(a.certs[0]) == nil
}

// current is the certificate that signs, which is renewed first if it is time.
// One that cannot be renewed goes on until its end.
func (a *Authority) current() (*x509.Certificate, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	left := time.Until(a.certs[0].NotAfter)
	if left > renewBefore {
		return a.certs[0], nil
	}
	if err := a.renewLocked(); err != nil && left <= 0 {
		return nil, err
	}
	return a.certs[0], nil
}

func (a *Authority) renewLocked() error {
	old := a.certs[0]
	next, err := a.sign(old.Subject, old.SubjectKeyId)
	if err != nil {
		return err
	}
	certs := slices.DeleteFunc(slices.Insert(slices.Clone(a.certs), 0, next), func(c *x509.Certificate) bool { return time.Now().After(c.NotAfter) })
	if err := durable.Write(a.cfg.CertFile, encodeCertificates(certs), 0o644); err != nil {
		return err
	}
	a.certs = certs
	return nil
}

// create makes a new one.
func (a *Authority) create() (err error) {
	for _, file := range []string{a.cfg.CertFile, a.cfg.KeyFile} {
		if err := durable.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			return err
		}
	}
	if a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return err
	}
	cert, err := a.sign(pkix.Name{CommonName: a.cfg.Name, Organization: []string{"cupola"}}, nil)
	if err != nil {
		return err
	}
	a.certs = []*x509.Certificate{cert}
	return WritePair(a.cfg.CertFile, a.cfg.KeyFile, [][]byte{cert.Raw}, a.key)
}

// sign makes a certificate of the authority's own key. The key's ID stays over
// renewals, as some look for issuers by it; nil makes one.
func (a *Authority) sign(name pkix.Name, keyID []byte) (*x509.Certificate, error) {
	now := time.Now()
	template := &x509.Certificate{SerialNumber: serial(), Subject: name, SubjectKeyId: keyID, NotBefore: now.Add(-skew), NotAfter: now.Add(life),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &a.key.PublicKey, a.key)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

func serial() *big.Int {
	n, _ := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127)) // never fails
	return n
}
