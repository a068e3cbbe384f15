package acme

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
)

// Flags are the flags of cupola serve.
type Flags struct {
	Enabled   bool   `name:"acme" help:"Get certificates from an ACME server (Let's Encrypt by default) for the names of mapped routes and of the system, as far as they are public. You agree to the server's terms of service." env:"CUPOLA_ACME"`
	Email     string `name:"acme-email" help:"Address for the ACME server's notices; none by default." env:"CUPOLA_ACME_EMAIL" placeholder:"ADDR"`
	Directory string `name:"acme-directory" help:"Directory URL of the ACME server." default:"https://acme-v02.api.letsencrypt.org/directory" env:"CUPOLA_ACME_DIRECTORY" placeholder:"URL"`
	CARoots   string `name:"acme-ca-roots" help:"CA certificates, in PEM, that sign the ACME server's own certificate; the system's by default." env:"CUPOLA_ACME_CA_ROOTS" placeholder:"FILE"`
	DNSHook   string `name:"acme-dns-hook" help:"Command that adds and removes DNS records, for the DNS-01 challenge and wildcard routes; by default, HTTP-01 and TLS-ALPN-01 are answered by --http and --https." env:"CUPOLA_ACME_DNS_HOOK" placeholder:"FILE"`
}

// Check refuses flags that cannot be.
func (f Flags) Check(https string) error {
	if !f.Enabled {
		if f.Email != "" || f.CARoots != "" || f.DNSHook != "" {
			return errors.New("invalid --acme-email, --acme-ca-roots or --acme-dns-hook: give --acme, too")
		}
		return nil
	}
	u, err := url.Parse(f.Directory)
	switch {
	case https == "off":
		return errors.New("invalid --acme: --https is off, so that nothing shows a certificate")
	case err != nil || u.Host == "" || u.Scheme != "https":
		return fmt.Errorf("invalid --acme-directory %q: give a URL like https://acme-v02.api.letsencrypt.org/directory", f.Directory)
	case f.Email != "" && !strings.Contains(f.Email, "@"):
		return fmt.Errorf("invalid --acme-email %q: give an address like admin@example.com", f.Email)
	}
	return nil
}

// roots reads the CAs of the server; nil are the system's.
func (f Flags) roots() (*x509.CertPool, error) {
	if f.CARoots == "" {
		return nil, nil
	}
	text, err := os.ReadFile(f.CARoots)
	if err != nil {
		return nil, fmt.Errorf("read --acme-ca-roots: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("invalid --acme-ca-roots %s: it holds no certificate in PEM", f.CARoots)
	}
	return pool, nil
}
