// Package storagetest runs servers that backups are kept on, on the loopback: an SFTP
// server and an S3-compatible object store. Both can go away and come back. Only for tests.
package storagetest

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/pkg/sftp"
	"github.com/rclone/gofakes3"
	"github.com/rclone/gofakes3/s3mem"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"cupola/runtime/fault"
)

// Server is a server that can go away.
type Server struct {
	Address string // of the storage that it is

	t     testing.TB
	addr  string
	serve func(net.Conn)

	mu       sync.Mutex
	listener net.Listener
	conns    map[net.Conn]bool
}

// Start lets the server come back. It has all that it had.
func (s *Server) Start() {
	s.t.Helper()
	l, err := net.Listen("tcp", s.addr)
	if err != nil {
		s.t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listener, s.addr = l, l.Addr().String()
	fault.Go("storagetest", func() { s.accept(l) })
}

func (s *Server) accept(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		s.conns[conn] = true
		s.mu.Unlock()
		fault.Go("storagetest", func() {
			s.serve(conn)
			s.mu.Lock()
			defer s.mu.Unlock()
			delete(s.conns, conn)
		})
	}
}

// Stop lets the server go away, in the middle of whatever it does.
func (s *Server) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.listener.Close()
	for c := range s.conns {
		_ = c.Close()
	}
}

func newServer(t testing.TB, serve func(net.Conn)) *Server {
	t.Helper()
	s := &Server{t: t, addr: "127.0.0.1:0", serve: serve, conns: map[net.Conn]bool{}}
	s.Start()
	t.Cleanup(s.Stop)
	return s
}

// SFTP runs an SFTP server of which the storage is dir.
func SFTP(t testing.TB, dir string) *Server {
	t.Helper()
	files := t.TempDir()
	hostKey, _ := keyPair(t, filepath.Join(files, "host"))
	_, user := keyPair(t, filepath.Join(files, "key"))
	config := &ssh.ServerConfig{PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		if string(key.Marshal()) != string(user.Marshal()) {
			return nil, fmt.Errorf("unknown key")
		}
		return nil, nil
	}}
	config.AddHostKey(hostKey)
	s := newServer(t, func(conn net.Conn) { serveSFTP(conn, config) })
	known := knownhosts.Line([]string{s.addr}, hostKey.PublicKey())
	if err := os.WriteFile(filepath.Join(files, "known_hosts"), []byte(known+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.Address = fmt.Sprintf("sftp://backup@%s%s?key=%s&known-hosts=%s", s.addr, dir, filepath.Join(files, "key"), filepath.Join(files, "known_hosts"))
	return s
}

func keyPair(t testing.TB, file string) (ssh.Signer, ssh.PublicKey) {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return signer, signer.PublicKey()
}

func serveSFTP(raw net.Conn, config *ssh.ServerConfig) {
	defer raw.Close()
	_, channels, requests, err := ssh.NewServerConn(raw, config)
	if err != nil {
		return
	}
	fault.Go("storagetest", func() { ssh.DiscardRequests(requests) })
	for n := range channels {
		channel, requests, err := n.Accept()
		if err != nil {
			return
		}
		fault.Go("storagetest", func() {
			for r := range requests {
				_ = r.Reply(r.Type == "subsystem", nil)
			}
		})
		server, err := sftp.NewServer(channel)
		if err != nil {
			return
		}
		_ = server.Serve()
	}
}

// The keys of S3's server.
const (
	accessKey = "CUPOLATEST"
	secretKey = "a-secret-of-the-test"
)

// S3 runs an object store with an empty bucket.
func S3(t testing.TB) *Server {
	t.Helper()
	backend := s3mem.New()
	if err := backend.CreateBucket(t.Context(), "backups"); err != nil {
		t.Fatal(err)
	}
	handler := gofakes3.New(bucket{backend}, gofakes3.WithV4Auth(map[string]string{accessKey: secretKey})).Server()
	s := newServer(t, func(conn net.Conn) { serveHTTP(conn, handler) })
	file := filepath.Join(t.TempDir(), "credentials")
	text := fmt.Sprintf("[default]\naws_access_key_id = %s\naws_secret_access_key = %s\n", accessKey, secretKey)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s.Address = fmt.Sprintf("s3://%s/backups/cupola?credentials=%s&insecure=true", s.addr, file)
	return s
}

// bucket lists as S3 does: without a delimiter where it is empty.
type bucket struct{ gofakes3.Backend }

// ListBucket lists a bucket.
func (b bucket) ListBucket(ctx context.Context, name string, prefix *gofakes3.Prefix, page gofakes3.ListBucketPage) (*gofakes3.ObjectList, error) {
	if prefix != nil && prefix.Delimiter == "" {
		prefix.HasDelimiter = false
	}
	return b.Backend.ListBucket(ctx, name, prefix, page)
}

// serveHTTP answers the requests of one connection.
func serveHTTP(conn net.Conn, handler http.Handler) {
	l := &single{conns: make(chan net.Conn, 1), addr: conn.LocalAddr()}
	done := make(chan struct{})
	l.conns <- conn
	server := &http.Server{Handler: handler, ConnState: func(_ net.Conn, state http.ConnState) {
		if state == http.StateClosed || state == http.StateHijacked {
			close(done)
		}
	}}
	fault.Go("storagetest", func() { _ = server.Serve(l) })
	<-done
	_ = server.Close()
}

// single is a listener that has one connection.
type single struct {
	conns chan net.Conn
	addr  net.Addr
	once  sync.Once
}

func (l *single) Accept() (net.Conn, error) {
	conn, ok := <-l.conns
	if !ok {
		return nil, net.ErrClosed
	}
	return conn, nil
}

func (l *single) Close() error   { l.once.Do(func() { close(l.conns) }); return nil }
func (l *single) Addr() net.Addr { return l.addr }
