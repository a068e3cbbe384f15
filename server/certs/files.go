package certs

import (
	"errors"
	"fmt"
	"os"
	"time"

	"cupola/store/cf"
)

// Files name the default certificate and its key, in PEM.
type Files struct {
	Cert string `name:"cert" help:"Default certificate of --https, with its chain in PEM; it is read again when it changes. By default the daemon's CA signs one for each domain." env:"CUPOLA_TLS_CERT" placeholder:"FILE"`
	Key  string `name:"key" help:"The key of --tls-cert, in PEM." env:"CUPOLA_TLS_KEY" placeholder:"FILE"`
}

// Check refuses one file without the other.
func (f Files) Check() error {
	if (f.Cert == "") != (f.Key == "") {
		return errors.New("give --tls-cert and --tls-key together, or none of them")
	}
	return nil
}

// filesInterval is the time between looks at whether the files changed.
const filesInterval = 5 * time.Second

// stamp tells versions of the files apart.
type stamp struct {
	cert, key       time.Time
	certLen, keyLen int64
}

func (f Files) stamp() (s stamp, err error) {
	cert, err := os.Stat(f.Cert)
	if err != nil {
		return s, err
	}
	key, err := os.Stat(f.Key)
	if err != nil {
		return s, err
	}
	return stamp{cert.ModTime(), key.ModTime(), cert.Size(), key.Size()}, nil
}

// readFiles reads the files, if there are any.
func (s *Source) readFiles() error {
	if s.Files.Cert == "" {
		return nil
	}
	seen, err := s.Files.stamp()
	if err != nil {
		return fmt.Errorf("read --tls-cert and --tls-key: %w", err)
	}
	cert, err := os.ReadFile(s.Files.Cert)
	if err != nil {
		return fmt.Errorf("read --tls-cert: %w", err)
	}
	key, err := os.ReadFile(s.Files.Key)
	if err != nil {
		return fmt.Errorf("read --tls-key: %w", err)
	}
	pair, err := cf.ParsePair(string(cert), string(key))
	if err != nil {
		return fmt.Errorf("invalid --tls-cert %s or --tls-key %s: %w", s.Files.Cert, s.Files.Key, err)
	}
	s.seen = seen
	s.file.Store(pair)
	return nil
}

// refreshFiles reads the files again if they changed. What cannot be read, as a key
// that was written before its certificate, leaves the certificate of before.
func (s *Source) refreshFiles() {
	if s.Files.Cert == "" {
		return
	}
	if now, err := s.Files.stamp(); err == nil && now == s.seen {
		return
	}
	if err := s.readFiles(); err != nil {
		s.Log.Error("default certificate not read again; the one of before stays", "err", err)
		return
	}
	s.Log.Info("default certificate read again", "file", s.Files.Cert, "until", s.file.Load().Leaf.NotAfter)
}
