package api

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
	"time"

	"cupola/store"
)

// certPair is a certificate and its key, in PEM.
type certPair struct{ cert, key string }

func (p certPair) body() string {
	b, _ := json.Marshal(map[string]string{"certificate": p.cert, "private_key": p.key})
	return string(b)
}

// newPair makes a certificate that is valid from and until a time.
func newPair(from, until time.Time, names ...string) certPair {
	key, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: names, NotBefore: from, NotAfter: until}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		panic(err)
	}
	keyDER, _ := x509.MarshalECPrivateKey(key)
	return certPair{string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER}))}
}

func yearPair(names ...string) certPair {
	return newPair(time.Now().AddDate(-1, 0, 0), time.Now().AddDate(1, 0, 0), names...)
}

// domainPair is good for own.test, the private domain of the tests of access.
var domainPair = yearPair("own.test", "*.own.test")

// TestCertificateOfADomain gives a domain certificates, good ones and others, and takes
// them away. Answers and events never have the key.
func TestCertificateOfADomain(t *testing.T) {
	w := newWorld(t)
	now := time.Now()
	first, wild := yearPair("shop.example", "*.shop.example"), yearPair("*.shop.example")
	w.run(t, []step{
		{method: "POST", path: "/v3/domains", body: `{"name": "shop.example"}`, status: 201, save: "shop"},
		{method: "POST", path: "/v3/domains", body: `{"name": "in.internal", "internal": true}`, status: 201, save: "internal"},
		{method: "GET", path: "/v3/domains/{shop}/certificate", status: 404, want: detail(10010, "Certificate not found")},
		{method: "DELETE", path: "/v3/domains/{shop}/certificate", status: 404, want: detail(10010, "Certificate not found")},
		{method: "PUT", path: "/v3/domains/{shop}/certificate", body: `{}`, status: 422, want: detail(10008, "Certificate can't be blank, Private key can't be blank")},
		{method: "PUT", path: "/v3/domains/{internal}/certificate", body: first.body(), status: 422, want: detail(10008, "Domain 'in.internal' has no certificate: give one to a domain of HTTP routes.")},
		{method: "PUT", path: "/v3/domains/{shop}/certificate", body: certPair{first.cert, wild.key}.body(), status: 422,
			want: detail(10008, "Certificate of domain 'shop.example' is invalid: the private key does not belong to the certificate: tls: private key does not match public key.")},
		{method: "PUT", path: "/v3/domains/{shop}/certificate", body: yearPair("else.example").body(), status: 422,
			want: detail(10008, `Certificate of domain 'shop.example' is invalid: the certificate does not cover shop.example or *.shop.example: it names ["else.example"].`)},
		{method: "PUT", path: "/v3/domains/{shop}/certificate", body: newPair(now.AddDate(-2, 0, 0), now.AddDate(-1, 0, 0), "shop.example").body(), status: 422,
			want: detail(10008, "Certificate of domain 'shop.example' is invalid: the certificate expired at "+now.AddDate(-1, 0, 0).UTC().Format(time.RFC3339)+".")},
		{method: "PUT", path: "/v3/domains/{shop}/certificate", body: newPair(now.AddDate(1, 0, 0), now.AddDate(2, 0, 0), "shop.example").body(), status: 422,
			want: detail(10008, "Certificate of domain 'shop.example' is invalid: the certificate is not valid before "+now.AddDate(1, 0, 0).UTC().Format(time.RFC3339)+".")},
		{method: "PUT", path: "/v3/domains/{shop}/certificate", body: first.body(), status: 200, want: `{"names": ["shop.example", "*.shop.example"], "relationships": {"domain": {"data": {"guid": "{shop}"}}}}`},
		{method: "PUT", path: "/v3/domains/{shop}/certificate", body: wild.body(), status: 200},
		{method: "GET", path: "/v3/domains/{shop}/certificate", status: 200, want: `{"names": ["*.shop.example"]}`},
	})
	got := w.ask("admin", "GET", w.fill("/v3/domains/{shop}/certificate"), "", "")
	events := w.ask("admin", "GET", "/v3/audit_events?types=audit.domain.certificate.update", "", "")
	for _, text := range []string{got.text, events.text} {
		if strings.Contains(text, "PRIVATE KEY") {
			t.Errorf("the key is shown: %s", text)
		}
	}
	if !strings.Contains(events.text, `"total_results":2`) {
		t.Errorf("got events %s; want two", events.text)
	}
	w.run(t, []step{
		{method: "DELETE", path: "/v3/domains/{shop}/certificate", status: 204},
		{method: "GET", path: "/v3/domains/{shop}/certificate", status: 404},
		{method: "PUT", path: "/v3/domains/{shop}/certificate", body: first.body(), status: 200},
		{method: "DELETE", path: "/v3/domains/{shop}", status: 202},
	})
	w.write(func(tx *store.Tx) error {
		if n, err := store.DomainCertificates.Count(tx, store.Query{}); err != nil || n != 0 {
			t.Errorf("got %d, %v; want the certificate deleted with its domain", n, err)
		}
		return nil
	})
}
