package sshproxy

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/crypto/ssh"

	"cupola/runtime/durable"
)

// HostKey reads the private key of path, in OpenSSH's format. It makes one,
// for root's eyes only, when there is none.
func HostKey(path string) (ssh.Signer, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := makeHostKey(path); err != nil {
			return nil, fmt.Errorf("make the ssh host key: %w", err)
		}
		text, err = os.ReadFile(path)
	}
	if err != nil {
		return nil, err
	}
	key, err := ssh.ParsePrivateKey(text)
	if err != nil {
		return nil, fmt.Errorf("read the ssh host key %s: %w", path, err)
	}
	return key, nil
}

// makeHostKey leaves a whole key or none.
func makeHostKey(path string) error {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return err
	}
	block, err := ssh.MarshalPrivateKey(key, "cupola")
	if err != nil {
		return err
	}
	return durable.Write(path, pem.EncodeToMemory(block), 0o600)
}

// Fingerprint is a key's SHA-256 as Cloud Foundry's clients compare it: base64
// without padding.
func Fingerprint(key ssh.PublicKey) string {
	sum := sha256.Sum256(key.Marshal())
	return base64.RawStdEncoding.EncodeToString(sum[:])
}
