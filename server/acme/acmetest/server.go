// Package acmetest is an ACME server on the loopback, for tests: pebble, which validates
// names for real.
package acmetest

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/letsencrypt/pebble/v2/ca"
	"github.com/letsencrypt/pebble/v2/db"
	"github.com/letsencrypt/pebble/v2/va"
	"github.com/letsencrypt/pebble/v2/wfe"
	"golang.org/x/net/dns/dnsmessage"

	"cupola/runtime/fault"
)

// Server is an ACME server on the loopback: pebble, which validates names for real, and
// its name server, which knows the loopback for all names.
type Server struct {
	*httptest.Server
	// Records is a directory whose files are the TXT records that the name server has.
	Records string

	ca *ca.CAImpl

	mu     sync.Mutex
	refuse func(*http.Request) (status int, problem string) // nil: nothing is refused
	orders int
}

// Start starts one whose certificates are valid for some seconds, and which
// validates names at ports of the loopback.
func Start(t testing.TB, life uint64, httpPort, tlsPort int) *Server {
	t.Helper()
	t.Setenv("PEBBLE_VA_NOSLEEP", "1")
	t.Setenv("PEBBLE_WFE_NONCEREJECT", "10") // of a hundred, which clients must bear
	t.Setenv("PEBBLE_AUTHZREUSE", "0")
	quiet := log.New(io.Discard, "", 0)
	s, base := &Server{Records: t.TempDir()}, db.NewMemoryStore()
	s.ca = ca.New(quiet, base, "", "ecdsa", 0, 1, map[string]ca.Profile{"default": {ValidityPeriod: life}})
	front := wfe.New(quiet, base, va.New(quiet, httpPort, tlsPort, false, startNameServer(t, s.Records), base), s.ca, nil, false, false, 1, 1)
	inner := front.Handler()
	s.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		refuse := s.refuse
		s.mu.Unlock()
		answer := &answer{ResponseWriter: w}
		defer s.count(r, answer)
		w = answer
		if refuse != nil {
			if status, problem := refuse(r); status != 0 {
				w.Header().Set("Content-Type", "application/problem+json")
				w.WriteHeader(status)
				fmt.Fprint(w, problem)
				return
			}
		}
		inner.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

// answer notes the status.
type answer struct {
	http.ResponseWriter
	status int
}

// WriteHeader is the writer's.
func (a *answer) WriteHeader(status int) {
	a.status = status
	a.ResponseWriter.WriteHeader(status)
}

// count counts an order. One with a nonce that is not taken comes again.
func (s *Server) count(r *http.Request, a *answer) {
	if strings.HasSuffix(r.URL.Path, "/order-plz") && a.status != http.StatusBadRequest {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.orders++
	}
}

// Directory is the URL of the server's directory.
func (s *Server) Directory() string { return s.URL + wfe.DirectoryPath }

// WriteCA writes the certificate that the server shows, as --acme-ca-roots takes it.
func (s *Server) WriteCA(t testing.TB) (file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "roots.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// Refuse makes the server refuse requests.
func (s *Server) Refuse(f func(*http.Request) (int, string)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuse = f
}

// Orders counts the orders that came, but for those with a nonce that was not taken.
func (s *Server) Orders() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.orders
}

// Roots are the CA that signs the certificates that the server issues.
func (s *Server) Roots() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(s.ca.GetRootCert(0).PEM())
	return pool
}

// nameServer answers DNS queries over TCP: the loopback for each name, and the TXT
// records that it was given.
type nameServer struct {
	dir string // has the TXT records, in files of their names
}

// startNameServer starts one, and returns its address.
func startNameServer(t testing.TB, dir string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	n := &nameServer{dir: dir}
	fault.Go("acmetest", func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			fault.Go("acmetest", func() { n.serve(conn) })
		}
	})
	return l.Addr().String()
}

func (n *nameServer) serve(conn net.Conn) {
	defer conn.Close()
	for {
		var length [2]byte
		if _, err := io.ReadFull(conn, length[:]); err != nil {
			return
		}
		query := make([]byte, int(length[0])<<8|int(length[1]))
		if _, err := io.ReadFull(conn, query); err != nil {
			return
		}
		answer, err := n.answer(query)
		if err != nil {
			return
		}
		if _, err := conn.Write(append([]byte{byte(len(answer) >> 8), byte(len(answer))}, answer...)); err != nil {
			return
		}
	}
}

func (n *nameServer) answer(query []byte) ([]byte, error) {
	var m dnsmessage.Message
	if err := m.Unpack(query); err != nil || len(m.Questions) != 1 {
		return nil, fmt.Errorf("bad query: %w", err)
	}
	q := m.Questions[0]
	m.Response, m.Additionals = true, nil
	h := dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class}
	switch q.Type {
	case dnsmessage.TypeA:
		m.Answers = []dnsmessage.Resource{{Header: h, Body: &dnsmessage.AResource{A: [4]byte{127, 0, 0, 1}}}}
	case dnsmessage.TypeTXT:
		if text, err := os.ReadFile(filepath.Join(n.dir, filepath.Base(strings.TrimSuffix(strings.ToLower(q.Name.String()), ".")))); err == nil {
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: h, Body: &dnsmessage.TXTResource{TXT: []string{strings.TrimSpace(string(text))}}})
		}
	}
	return m.Pack()
}
