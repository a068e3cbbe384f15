package identity

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net/netip"
	"slices"
	"testing"
	"time"
)

func TestIssue(t *testing.T) {
	a, err := Open(t.TempDir(), DefaultLife)
	if err != nil {
		t.Fatal(err)
	}
	units := []string{"organization:o", "space:s", "app:a"}
	got, err := a.Issue(Subject{InstanceGUID: "0d9b7f2e", Address: netip.MustParseAddr("10.1.2.3"), OrganizationalUnits: units})
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(got.Certificate, got.Key)
	if err != nil || len(pair.Certificate) != 2 {
		t.Fatalf("got %d certificates, %v; want the leaf and its issuer", len(pair.Certificate), err)
	}
	if block, _ := pem.Decode(got.Key); block == nil || block.Type != "RSA PRIVATE KEY" {
		t.Errorf("got key %v; want RSA in PKCS #1", block)
	}
	leaf, roots := pair.Leaf, x509.NewCertPool()
	roots.AppendCertsFromPEM(a.Certificate())
	for _, usage := range []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth} {
		for _, name := range []string{"0d9b7f2e", "10.1.2.3"} {
			if _, err := leaf.Verify(x509.VerifyOptions{DNSName: name, Roots: roots, KeyUsages: []x509.ExtKeyUsage{usage}}); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	slices.Sort(units) // in DER they are a set
	if leaf.Subject.CommonName != "0d9b7f2e" || !slices.Equal(slices.Sorted(slices.Values(leaf.Subject.OrganizationalUnit)), units) {
		t.Errorf("got %v", leaf.Subject)
	}
	if left := time.Until(leaf.NotAfter); left > DefaultLife || left < DefaultLife-time.Minute || !leaf.NotAfter.Equal(got.NotAfter.Truncate(time.Second)) {
		t.Errorf("got %s left; want %s", left, DefaultLife)
	}
}

func TestRenewBefore(t *testing.T) {
	for life, want := range map[time.Duration]time.Duration{DefaultLife: 30 * time.Minute, time.Minute: 15 * time.Second} {
		if got := (&Authority{life: life}).RenewBefore(); got != want {
			t.Errorf("%s: got %s; want %s", life, got, want)
		}
	}
	a, err := Open(t.TempDir(), DefaultLife)
	if err != nil {
		t.Fatal(err)
	}
	c, err := a.IssueServer(Subject{InstanceGUID: "i", Names: []string{"i.services.internal"}})
	if renewal := time.Until(c.NotAfter) - a.RenewServerBefore(); err != nil || renewal.Round(time.Minute) != DefaultLife-30*time.Minute || time.Until(c.NotAfter) < 29*DefaultLife {
		t.Errorf("got a server's certificate until %s, renewed after %s, %v", c.NotAfter, renewal, err)
	}
}

// A further certificate is for the same key, and has other names.
func TestCertify(t *testing.T) {
	a, err := Open(t.TempDir(), DefaultLife)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(a.Certificate())
	for name, issue := range map[string]func(Subject) (Credentials, error){"RSA": a.Issue, "ECDSA": a.IssueLight, "server": a.IssueServer} {
		first, err := issue(Subject{InstanceGUID: "i", Address: netip.MustParseAddr("10.1.2.3")})
		if err != nil {
			t.Fatal(err)
		}
		further, err := a.Certify(Subject{InstanceGUID: "i", OrganizationalUnits: []string{"app:a"}, Names: []string{"back.apps.internal"}}, first.Certificate)
		if err != nil {
			t.Fatal(err)
		}
		pair, err := tls.X509KeyPair(further, first.Key) // which refuses another key
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, host := range []string{"i", "back.apps.internal"} {
			if _, err := pair.Leaf.Verify(x509.VerifyOptions{DNSName: host, Roots: roots}); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if len(pair.Leaf.IPAddresses) > 0 || !slices.Equal(pair.Leaf.Subject.OrganizationalUnit, []string{"app:a"}) {
			t.Errorf("%s: got %v, %v", name, pair.Leaf.IPAddresses, pair.Leaf.Subject)
		}
	}
	for _, bad := range []string{"", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"} {
		if _, err := a.Certify(Subject{InstanceGUID: "i"}, []byte(bad)); err == nil {
			t.Errorf("%q was taken for a certificate", bad)
		}
	}
}
