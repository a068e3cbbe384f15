package bbs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"cupola/runtime/authority"
	"cupola/runtime/durable"
)

// files are the files of certificates and keys, in PEM.
type files struct {
	CA         string // signs clients' certificates
	ServerCert string
	ServerKey  string
	ClientCert string // "" where others make them
	ClientKey  string
}

// filesIn are the files that makeFiles makes in a directory.
func filesIn(dir string) files {
	in := func(name string) string { return filepath.Join(dir, name) }
	return files{CA: in("ca.crt"), ServerCert: in("server.crt"), ServerKey: in("server.key"), ClientCert: in("client.crt"), ClientKey: in("client.key")}
}

// serverConfig is a server's TLS configuration: it accepts only clients with a certificate of the CA.
func (f files) serverConfig() (*tls.Config, error) {
	cert, err := tls.LoadX509KeyPair(f.ServerCert, f.ServerKey)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(f.CA)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s holds no certificate in PEM", f.CA)
	}
	return &tls.Config{Certificates: []tls.Certificate{cert}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS12,
		// Diego's BBS speaks HTTP/1.1 alone; clients of Locket offer nothing but HTTP/2.
		NextProtos: []string{"http/1.1", "h2"}}, nil
}

// makeFiles makes a CA in a directory, and a pair of certificates: for a
// server that is reached by the hosts, and for a client. What is there stays,
// unless it is about to expire or does not name the hosts.
func makeFiles(dir string, hosts []string) (files, error) {
	f := filesIn(dir)
	if err := durable.MkdirAll(dir, 0o700); err != nil {
		return f, err
	}
	ca, err := authority.Open(authority.Config{CertFile: f.CA, KeyFile: filepath.Join(dir, "ca.key"), Name: "cupola BBS CA"})
	if err != nil {
		return f, err
	}
	s := signer{ca}
	if err := s.issue(f.ServerCert, f.ServerKey, hosts); err != nil {
		return f, err
	}
	return f, s.issue(f.ClientCert, f.ClientKey, nil)
}

// How long certificates are valid, and how long before the end they are
// renewed.
const (
	certYears   = 2
	renewBefore = 180 * 24 * time.Hour
)

// signer issues certificates.
type signer struct{ ca *authority.Authority }

// issue makes a certificate for a server, or for a client where hosts is nil,
// unless there is a good one.
func (s signer) issue(certFile, keyFile string, hosts []string) error {
	if pair, err := tls.LoadX509KeyPair(certFile, keyFile); err == nil && s.good(pair.Leaf, hosts) {
		return nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := x509.Certificate{Subject: pkix.Name{CommonName: "bbs client"}, NotAfter: time.Now().AddDate(certYears, 0, 0),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	if hosts != nil {
		template.Subject.CommonName, template.ExtKeyUsage = hosts[0], []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	}
	for _, h := range hosts {
		if ip := net.ParseIP(h); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, h)
		}
	}
	chain, err := s.ca.Issue(template, &key.PublicKey)
	if err != nil {
		return err
	}
	return authority.WritePair(certFile, keyFile, chain[:1], key)
}

func (s signer) good(cert *x509.Certificate, hosts []string) bool {
	if time.Until(cert.NotAfter) < renewBefore || !s.ca.Issued(cert) {
		return false
	}
	return !slices.ContainsFunc(hosts, func(h string) bool { return cert.VerifyHostname(h) != nil })
}
