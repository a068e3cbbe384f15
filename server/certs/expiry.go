package certs

import (
	"crypto/tls"
	"time"
)

// Expiry is when a certificate ends that the daemon does not renew.
type Expiry struct {
	Name string // the domain, or the file
	File bool   // of Files
	Ends time.Time
}

// Expiries lists the certificates that were given for domains and in files.
func (s *Source) Expiries() (all []Expiry) {
	add := func(name string, file bool, pair *tls.Certificate) {
		all = append(all, Expiry{Name: name, File: file, Ends: pair.Leaf.NotAfter})
	}
	for name, pair := range s.rows.Load().given {
		add(name, false, pair)
	}
	if pair := s.file.Load(); pair != nil {
		add(s.certFile(), true, pair)
	}
	return all
}
