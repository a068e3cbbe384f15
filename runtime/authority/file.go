package authority

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"cupola/runtime/durable"
)

// read reads the files. An error that is fs.ErrNotExist says that one of them
// is missing.
func (a *Authority) read() error {
	text, err := os.ReadFile(a.cfg.CertFile)
	if err != nil {
		return err
	}
	keyText, err := os.ReadFile(a.cfg.KeyFile)
	if err != nil {
		return err
	}
	if a.certs, err = decodeCertificates(text); err != nil {
		return fmt.Errorf("%w: remove it and its key %s for a new one", err, a.cfg.KeyFile)
	}
	block, _ := pem.Decode(keyText)
	if block == nil {
		return fmt.Errorf("its key %s is not PEM: remove both files, and the daemon makes new ones", a.cfg.KeyFile)
	}
	if a.key, err = x509.ParseECPrivateKey(block.Bytes); err != nil {
		return fmt.Errorf("its key %s: %w", a.cfg.KeyFile, err)
	}
	if !a.key.PublicKey.Equal(a.certs[0].PublicKey) {
		return fmt.Errorf("its key %s is that of another certificate: remove both for a new one", a.cfg.KeyFile)
	}
	return nil
}

func decodeCertificates(text []byte) (certs []*x509.Certificate, err error) {
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		certs = append(certs, c)
	}
	if len(certs) == 0 {
		return nil, errors.New("it holds no certificate in PEM")
	}
	return certs, nil
}

func encodeCertificates(certs []*x509.Certificate) []byte {
	var chain [][]byte
	for _, c := range certs {
		chain = append(chain, c.Raw)
	}
	return PEM(chain...)
}

// PEM encodes certificates that are in DER.
func PEM(chain ...[]byte) []byte {
	var text bytes.Buffer
	for _, der := range chain {
		text.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	}
	return text.Bytes()
}

// WritePair writes certificates in DER, and the key of the first. The
// certificates come last: a daemon that is killed meanwhile leaves no pair that
// does not belong together. Where the disk has no room, the old pair stays.
func WritePair(certFile, keyFile string, chain [][]byte, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	if err := durable.Stage(keyFile, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), 0o600); err != nil {
		return err
	}
	if err := durable.Stage(certFile, PEM(chain...), 0o644); err != nil {
		return errors.Join(err, durable.Discard(keyFile))
	}
	if err := os.Remove(certFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := durable.Take(keyFile); err != nil {
		return err
	}
	return durable.Take(certFile)
}
