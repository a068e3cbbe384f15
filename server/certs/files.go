package certs

import (
	"crypto/tls"
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

// Pair is what files had when they were read.
type Pair struct {
	files Files
	seen  stamp
	pair  *tls.Certificate // nil: there are no files
}

// Read reads the files, if there are any.
func (f Files) Read() (p Pair, err error) {
	p.files = f
	if f.Cert == "" {
		return p, nil
	}
	if p.seen, err = f.stamp(); err != nil {
		return p, fmt.Errorf("read --tls-cert and --tls-key: %w", err)
	}
	cert, err := os.ReadFile(f.Cert)
	if err != nil {
		return p, fmt.Errorf("read --tls-cert: %w", err)
	}
	key, err := os.ReadFile(f.Key)
	if err != nil {
		return p, fmt.Errorf("read --tls-key: %w", err)
	}
	if p.pair, err = cf.ParsePair(string(cert), string(key)); err != nil {
		return p, fmt.Errorf("invalid --tls-cert %s or --tls-key %s: %w", f.Cert, f.Key, err)
	}
	return p, nil
}

// Use makes a certificate the default one; its files are looked at from now on.
func (s *Source) Use(p Pair) {
	s.filesMu.Lock()
	defer s.filesMu.Unlock()
	s.useLocked(p)
}

func (s *Source) useLocked(p Pair) {
	s.files, s.seen = p.files, p.seen
	s.file.Store(p.pair)
}

// refreshFiles reads the files again if they changed. What cannot be read, as a key
// that was written before its certificate, leaves the certificate of before.
func (s *Source) refreshFiles() {
	s.filesMu.Lock()
	defer s.filesMu.Unlock()
	if s.files.Cert == "" {
		return
	}
	if now, err := s.files.stamp(); err == nil && now == s.seen {
		return
	}
	p, err := s.files.Read()
	if err != nil {
		s.Log.Error("default certificate not read again; the one of before stays", "err", err)
		return
	}
	s.useLocked(p)
	s.Log.Info("default certificate read again", "file", p.files.Cert, "until", p.pair.Leaf.NotAfter)
}

// certFile names the file of the default certificate.
func (s *Source) certFile() string {
	s.filesMu.Lock()
	defer s.filesMu.Unlock()
	return s.files.Cert
}
