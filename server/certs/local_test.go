package front

import (
	"crypto/x509"
	"log/slog"
	"testing"

	"cupola/runtime/authority"
)

// TestOwnCertificateNamesTheSystemsHosts wants clients that trust the CA to reach
// every system host by name, also below a top-level domain, of which no wildcard
// counts.
func TestOwnCertificateNamesTheSystemsHosts(t *testing.T) {
	dir := t.TempDir()
	ca := func() (*authority.Authority, error) {
		return authority.Open(authority.Config{CertFile: dir + "/ca.pem", KeyFile: dir + "/ca.key", Name: "test"})
	}
	for _, domain := range []string{"localhost", "cf.example.com"} {
		cs := Certificates{Authority: ca, APIHost: "api." + domain, Domain: domain, Log: slog.New(slog.DiscardHandler)}
		cert, err := cs.own()
		if err != nil {
			t.Fatal(err)
		}
		leaf, err := x509.ParseCertificate(cert.Certificate[0])
		if err != nil {
			t.Fatal(err)
		}
		for _, host := range []string{"api", "console", "uaa", "login", "log-cache"} {
			found := false
			for _, name := range leaf.DNSNames {
				found = found || name == host+"."+domain
			}
			if !found {
				t.Errorf("%s.%s is not named in %v", host, domain, leaf.DNSNames)
			}
		}
	}
}
