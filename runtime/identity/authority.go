package identity

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"time"
)

// authorityLife is how long an authority is good for.
const authorityLife = 10 * 365 * 24 * time.Hour

// The files of an authority.
const (
	certFile = "ca.crt"
	keyFile  = "ca.key"
)

// Authority issues certificates.
type Authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	text []byte // cert as PEM
	life time.Duration
	keys *keys
}

// Open reads the authority that lies in dir, and makes it where there is none,
// or one that has ended. What it issues is good for life.
func Open(dir string, life time.Duration) (*Authority, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make directory of the identity authority: %w", err)
	}
	a, err := read(dir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && time.Now().Add(2*life).After(a.cert.NotAfter) {
		if err := create(dir); err != nil {
			return nil, fmt.Errorf("make identity authority: %w", err)
		}
		a, err = read(dir)
	}
	if err != nil {
		return nil, fmt.Errorf("read identity authority: %w", err)
	}
	a.keys, a.life = newKeys(), life
	return a, nil
}

// Certificate is that of the authority, as PEM.
func (a *Authority) Certificate() []byte { return a.text }

func read(dir string) (*Authority, error) {
	keyPEM, err := os.ReadFile(filepath.Join(dir, keyFile))
	if err != nil {
		return nil, err
	}
	certPEM, err := os.ReadFile(filepath.Join(dir, certFile))
	if err != nil {
		return nil, err
	}
	keyBlock, _ := pem.Decode(keyPEM)
	certBlock, _ := pem.Decode(certPEM)
	if keyBlock == nil || certBlock == nil {
		return nil, errors.New("a file is no PEM")
	}
	key, err := x509.ParseECPrivateKey(keyBlock.Bytes)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(certBlock.Bytes)
	if err != nil {
		return nil, err
	}
	if !key.PublicKey.Equal(cert.PublicKey) {
		return nil, errors.New("its key is not that of its certificate")
	}
	return &Authority{cert: cert, key: key, text: certPEM}, nil
}

// create writes the key first, and the certificate last: without it there is no
// authority.
func create(dir string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	now := time.Now()
	cert := &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: "cupola instance identity", Organization: []string{"cupola"}},
		NotBefore: now.Add(-skew), NotAfter: now.Add(authorityLife),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, cert, key.Public(), key)
	if err != nil {
		return err
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(dir, certFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return errors.Join(
		replace(filepath.Join(dir, keyFile), "EC PRIVATE KEY", keyDER, 0o600),
		replace(filepath.Join(dir, certFile), "CERTIFICATE", der, 0o644))
}

func replace(path, kind string, der []byte, mode fs.FileMode) error {
	content := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
	if err := os.WriteFile(path+".new", content, mode); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

func serial() *big.Int {
	n, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		panic(err) // crypto/rand does not fail
	}
	return n
}
