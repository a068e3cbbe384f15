package cf

import "time"

// SSHKey is a public key by which a user pushes over SSH.
type SSHKey struct {
	Resource
	UserGUID    string
	Name        string
	PublicKey   string // as authorized_keys has it, without options and comment
	Fingerprint string // "SHA256:" and base64 without padding
	LastUsedAt  time.Time
}
