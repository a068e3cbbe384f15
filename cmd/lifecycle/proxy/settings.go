package proxy

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"slices"
	"strconv"
	"sync"

	"cupola/runtime/contract"
)

// settings are what the file says, which may change at any time.
type settings struct {
	file string

	mu   sync.Mutex
	seen fs.FileInfo // of what was read last
	now  *ports
}

// ports are the TLS ports as one version of the file has them.
type ports struct {
	address  string
	to       map[uint16]uint16
	most     *tls.Config // of all ports but
	internal *tls.Config // of contract.InternalTLSPort
}

// current reads the file if it has changed. One that cannot be read counts as
// unchanged.
func (s *settings) current() (*ports, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	info, err := os.Stat(s.file)
	if err == nil && s.now != nil && os.SameFile(info, s.seen) && info.ModTime().Equal(s.seen.ModTime()) {
		return s.now, nil
	}
	var read *ports
	if err == nil {
		read, err = readPorts(s.file)
	}
	switch {
	case err == nil:
		s.now, s.seen = read, info
	case s.now == nil:
		return nil, err
	}
	return s.now, nil
}

func readPorts(file string) (*ports, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var c contract.ProxyConfig
	if err := json.Unmarshal(text, &c); err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	own, err := tls.X509KeyPair([]byte(c.Certificate), []byte(c.Key))
	if err != nil {
		return nil, fmt.Errorf("read certificate in %s: %w", file, err)
	}
	internal, err := tls.X509KeyPair([]byte(c.InternalCertificate), []byte(c.Key))
	if err != nil {
		return nil, fmt.Errorf("read certificate for containers in %s: %w", file, err)
	}
	p := &ports{address: c.Address, to: c.Ports, most: serverConfig(own), internal: serverConfig(internal)}
	p.most.NextProtos = []string{"h2", "http/1.1"}
	if c.ClientCAs == "" {
		return p, nil
	}
	return p, demandClients(p.most, c)
}

// serverConfig speaks TLS as Diego's Envoy does (executor: envoyconfig/config.go,
// SupportedCipherSuites). An ECDSA key, which Diego does not have, has the same
// ciphers. No session is resumed: later whom to trust may have changed.
func serverConfig(cert tls.Certificate) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{cert}, SessionTicketsDisabled: true,
		CipherSuites: []uint16{
			tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384, tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
			tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
		},
	}
}

// forClient is c for a client. One that offers only other protocols goes on without
// any, as with Envoy.
func forClient(c *tls.Config, offers []string) *tls.Config {
	ours := func(name string) bool { return slices.Contains(c.NextProtos, name) }
	if len(c.NextProtos) == 0 || len(offers) == 0 || slices.ContainsFunc(offers, ours) {
		return c
	}
	other := c.Clone()
	other.NextProtos = nil
	return other
}

// demandClients lets in only clients with a certificate by one of the authorities,
// and with one of the names, if there are any.
func demandClients(t *tls.Config, c contract.ProxyConfig) error {
	t.ClientAuth, t.ClientCAs = tls.RequireAndVerifyClientCert, x509.NewCertPool()
	if !t.ClientCAs.AppendCertsFromPEM([]byte(c.ClientCAs)) {
		return errors.New("read authorities of clients: no certificate")
	}
	if len(c.ClientNames) == 0 {
		return nil
	}
	t.VerifyConnection = func(state tls.ConnectionState) error {
		named := func(name string) bool { return slices.Contains(c.ClientNames, name) }
		if len(state.PeerCertificates) > 0 && slices.ContainsFunc(state.PeerCertificates[0].DNSNames, named) {
			return nil
		}
		return errors.New("the client's certificate has another name")
	}
	return nil
}

// of returns how to speak at a TLS port, and the address that it leads to.
func (p *ports) of(port uint16) (*tls.Config, string, error) {
	to, ok := p.to[port]
	if !ok {
		return nil, "", fmt.Errorf("port %d leads nowhere", port)
	}
	address := net.JoinHostPort(p.address, strconv.Itoa(int(to)))
	if port == contract.InternalTLSPort {
		return p.internal, address, nil
	}
	return p.most, address, nil
}
