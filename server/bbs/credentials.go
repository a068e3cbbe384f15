package bbs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Files are the files of certificates and keys, in PEM.
type Files struct {
	CA         string // signs clients' certificates
	ServerCert string
	ServerKey  string
	ClientCert string // "" where others make them
	ClientKey  string
}

// FilesIn are the files that Make makes in a directory.
func FilesIn(dir string) Files {
	in := func(name string) string { return filepath.Join(dir, name) }
	return Files{CA: in("ca.crt"), ServerCert: in("server.crt"), ServerKey: in("server.key"), ClientCert: in("client.crt"), ClientKey: in("client.key")}
}

// TLS is how a server is to speak: with clients that the CA vouches for alone.
func (f Files) TLS() (*tls.Config, error) {
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
	return &tls.Config{Certificates: []tls.Certificate{cert}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS12}, nil
}

// Make makes a CA of its own in a directory, and a pair of certificates: for a
// server that is reached by the hosts, and for a client. What is there stays,
// unless it is about to expire or does not name the hosts.
func Make(dir string, hosts []string) (Files, error) {
	f := FilesIn(dir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return f, err
	}
	ca, key, err := authority(f.CA, filepath.Join(dir, "ca.key"))
	if err != nil {
		return f, fmt.Errorf("make the certificate authority of the BBS: %w", err)
	}
	s := signer{ca, key}
	if err := s.issue(f.ServerCert, f.ServerKey, hosts); err != nil {
		return f, err
	}
	return f, s.issue(f.ClientCert, f.ClientKey, nil)
}

// How long certificates are good, and how long before the end they are made
// anew when a daemon starts.
const (
	authorityYears = 10
	certYears      = 2
	renewBefore    = 180 * 24 * time.Hour
)

// authority reads a CA, or makes it.
func authority(certFile, keyFile string) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err == nil {
		key, ok := pair.PrivateKey.(*ecdsa.PrivateKey)
		if !ok {
			return nil, nil, fmt.Errorf("%s is no ECDSA key: remove it and %s for a new one", keyFile, certFile)
		}
		return pair.Leaf, key, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	now := time.Now()
	template := &x509.Certificate{SerialNumber: serial(), Subject: pkix.Name{CommonName: "cupola BBS CA"}, NotBefore: now.Add(-time.Hour),
		NotAfter: now.AddDate(authorityYears, 0, 0), IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, nil, err
	}
	if err := writePair(certFile, keyFile, der, key); err != nil {
		return nil, nil, err
	}
	ca, err := x509.ParseCertificate(der)
	return ca, key, err
}

// signer issues certificates.
type signer struct {
	ca  *x509.Certificate
	key *ecdsa.PrivateKey
}

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
	now := time.Now()
	template := &x509.Certificate{SerialNumber: serial(), Subject: pkix.Name{CommonName: "bbs client"}, NotBefore: now.Add(-time.Hour),
		NotAfter: now.AddDate(certYears, 0, 0), KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
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
	der, err := x509.CreateCertificate(rand.Reader, template, s.ca, &key.PublicKey, s.key)
	if err != nil {
		return err
	}
	return writePair(certFile, keyFile, der, key)
}

func (s signer) good(cert *x509.Certificate, hosts []string) bool {
	if time.Until(cert.NotAfter) < renewBefore || cert.CheckSignatureFrom(s.ca) != nil {
		return false
	}
	return !slices.ContainsFunc(hosts, func(h string) bool { return cert.VerifyHostname(h) != nil })
}

func serial() *big.Int {
	n, _ := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120)) // never fails
	return n
}

// writePair writes the certificate last: without it there is no pair.
func writePair(certFile, keyFile string, der []byte, key *ecdsa.PrivateKey) error {
	text, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	if err := os.Remove(certFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := replace(keyFile, pem.Block{Type: "EC PRIVATE KEY", Bytes: text}, 0o600); err != nil {
		return err
	}
	return replace(certFile, pem.Block{Type: "CERTIFICATE", Bytes: der}, 0o644)
}

// replace writes a file whole or not at all, whenever the daemon is killed.
func replace(name string, block pem.Block, mode fs.FileMode) error {
	if err := os.WriteFile(name+".new", pem.EncodeToMemory(&block), mode); err != nil {
		return err
	}
	return os.Rename(name+".new", name)
}
