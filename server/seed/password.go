package seed

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"cupola/runtime/durable"
)

// passwordFile is where the admin's password is kept for `cupola credentials`.
func passwordFile(dataDir string) string { return filepath.Join(dataDir, "db", "admin-password") }

// AdminPassword reads the admin's password of a data directory.
func AdminPassword(dataDir string) (string, error) {
	b, err := os.ReadFile(passwordFile(dataDir))
	return strings.TrimSpace(string(b)), err
}

// password is the configured password, else the kept one, else a new one.
// It is kept, so that `cupola credentials` can tell it.
func (s *Seeds) password() (string, error) {
	password := s.Password
	if password == "" {
		kept, err := AdminPassword(s.DataDir)
		if err == nil && kept != "" {
			return kept, nil
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		password = strings.ToLower(rand.Text()[:20])
	}
	return password, durable.Ensure(passwordFile(s.DataDir), []byte(password+"\n"), 0o600)
}
