package kubetest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"net"
	"testing"
	"time"

	"cupola/runtime/authority"
)

// certify makes a CA in ca.pem, the API server's certificate for addresses in
// server.pem, and in client.pem that by which kubelets know the API server.
func (p *Plane) certify(ips ...net.IP) {
	p.t.Helper()
	ca, err := authority.Open(authority.Config{CertFile: p.dir + "/ca.pem", KeyFile: p.dir + "/ca.key", Name: "kubetest"})
	if err != nil {
		p.t.Fatal(err)
	}
	p.trust = x509.NewCertPool()
	p.trust.AppendCertsFromPEM(ca.Trust())
	p.issue(ca, "server", x509.Certificate{IPAddresses: ips, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	p.issue(ca, "client", x509.Certificate{
		Subject: pkix.Name{CommonName: "apiserver", Organization: []string{"system:masters"}}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
}

func (p *Plane) issue(ca *authority.Authority, name string, c x509.Certificate) {
	p.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		p.t.Fatal(err)
	}
	c.NotAfter = time.Now().Add(24 * time.Hour)
	chain, err := ca.Issue(c, &key.PublicKey)
	if err == nil {
		err = authority.WritePair(p.dir+"/"+name+".pem", p.dir+"/"+name+".key", chain, key)
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

// serviceKey signs the tokens of service accounts.
func serviceKey(t testing.TB) string {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))
}
