package cf

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"time"
)

// DomainCertificate is the certificate that the router shows for a domain, whose GUID
// it has.
type DomainCertificate struct {
	Resource
	Certificate string // and its chain, in PEM
	Key         string // in PEM
}

// ParsePair reads a certificate with its chain, and its key. It checks that they belong
// together, in order.
func ParsePair(certificate, key string) (*tls.Certificate, error) {
	chain, err := parseChain([]byte(certificate))
	if err != nil {
		return nil, err
	}
	if block, _ := pem.Decode([]byte(key)); block == nil {
		return nil, errors.New("the private key is not in PEM")
	}
	pair, err := tls.X509KeyPair([]byte(certificate), []byte(key))
	if err != nil {
		return nil, fmt.Errorf("the private key does not belong to the certificate: %w", err)
	}
	pair.Leaf = chain[0]
	return &pair, nil
}

func parseChain(text []byte) (chain []*x509.Certificate, err error) {
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("the certificate holds a PEM block %q: give certificates alone", block.Type)
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("the certificate cannot be read: %w", err)
		}
		chain = append(chain, c)
	}
	if len(chain) == 0 {
		return nil, errors.New("the certificate is not in PEM")
	}
	for n, c := range chain[1:] {
		if err := chain[n].CheckSignatureFrom(c); err != nil {
			return nil, fmt.Errorf("the chain is out of order: certificate %d (%s) did not sign certificate %d (%s); give the server's certificate first, then each one's issuer", n+2, c.Subject, n+1, chain[n].Subject)
		}
	}
	return chain, nil
}

// CheckCertificate refuses a certificate that clients of a domain would not accept.
func CheckCertificate(leaf *x509.Certificate, domain string, now time.Time) error {
	switch {
	case now.After(leaf.NotAfter):
		return fmt.Errorf("the certificate expired at %s", leaf.NotAfter.UTC().Format(time.RFC3339))
	case now.Before(leaf.NotBefore):
		return fmt.Errorf("the certificate is not valid before %s", leaf.NotBefore.UTC().Format(time.RFC3339))
	case leaf.VerifyHostname(domain) != nil && leaf.VerifyHostname("x."+domain) != nil:
		return fmt.Errorf("the certificate does not cover %[2]s or *.%[2]s: it names %[1]q", leaf.DNSNames, domain)
	}
	return nil
}
