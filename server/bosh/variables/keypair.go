package variables

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"strings"

	"golang.org/x/crypto/ssh"
)

// defaultKeyLength is BOSH's.
const defaultKeyLength = 2048

func newKey(o Options) (*rsa.PrivateKey, error) {
	bits := o.KeyLength
	if bits == 0 {
		bits = defaultKeyLength
	}
	return rsa.GenerateKey(rand.Reader, bits)
}

func encodeKey(key *rsa.PrivateKey) string {
	return block("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(key))
}

func block(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

func rsaPair(key *rsa.PrivateKey) (map[string]string, error) {
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		return nil, err
	}
	return map[string]string{"private_key": encodeKey(key), "public_key": block("PUBLIC KEY", public)}, nil
}

func sshPair(key *rsa.PrivateKey, o Options) (map[string]string, error) {
	public, err := ssh.NewPublicKey(&key.PublicKey)
	if err != nil {
		return nil, err
	}
	line := strings.TrimSuffix(string(ssh.MarshalAuthorizedKey(public)), "\n")
	if o.SSHComment != "" {
		line += " " + strings.Join(strings.Fields(o.SSHComment), " ")
	}
	return map[string]string{"private_key": encodeKey(key), "public_key": line + "\n", "public_key_fingerprint": ssh.FingerprintLegacyMD5(public)}, nil
}
