package authority

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"net"
	"testing"
	"time"
)

// TestConstrained wants what an authority signs accepted within the domains, and refused
// elsewhere, by who trusts the constrained certificate.
func TestConstrained(t *testing.T) {
	config := configIn(t.TempDir())
	a := open(t, config)
	own := net.ParseIP("203.0.113.7")
	c, err := Constrained(config, []string{"Example.com", "*.shop.example"}, []net.IP{own})
	if err != nil {
		t.Fatal(err)
	}
	again, err := Constrained(config, []string{"Example.com", "*.shop.example"}, []net.IP{own})
	if err != nil || !bytes.Equal(c.Raw, again.Raw) {
		t.Errorf("got another certificate the second time, %v", err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(c)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		names []string
		ips   []net.IP
		good  bool
	}{
		{[]string{"example.com"}, nil, true}, {[]string{"a.b.example.com"}, nil, true}, {[]string{"x.shop.example"}, nil, true}, {[]string{"api.localhost", "localhost"}, nil, true},
		{[]string{"localhost"}, []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback, net.IPv4(10, 1, 2, 3), own}, true},
		{[]string{"bank.example"}, nil, false}, {[]string{"example.com", "bank.example"}, nil, false}, {[]string{"notexample.com"}, nil, false},
		{[]string{"localhost"}, []net.IP{net.ParseIP("198.51.100.1")}, false},
	} {
		chain, err := a.Issue(x509.Certificate{DNSNames: test.names, IPAddresses: test.ips, NotAfter: time.Now().Add(time.Hour), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}, &key.PublicKey)
		if err != nil {
			t.Fatal(err)
		}
		leaf, err := x509.ParseCertificate(chain[0])
		if err != nil {
			t.Fatal(err)
		}
		if _, err := leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: test.names[0]}); (err == nil) != test.good {
			t.Errorf("%v %v: got %v", test.names, test.ips, err)
		}
	}
	for _, bad := range []string{"", "a b", "https://example.com"} {
		if _, err := Constrained(config, []string{bad}, nil); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}
