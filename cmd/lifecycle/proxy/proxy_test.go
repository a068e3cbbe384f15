package proxy

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"cupola/runtime/contract"
	"cupola/test/loopback"
)

// signer is an authority of a test.
type signer struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  string
}

func newSigner(t *testing.T) *signer {
	t.Helper()
	s := &signer{key: newKey(t)}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &s.key.PublicKey, s.key)
	if err != nil {
		t.Fatal(err)
	}
	if s.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	s.pem = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	return s
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// certify makes a certificate for a key.
func (s *signer) certify(t *testing.T, key *ecdsa.PrivateKey, names ...string) string {
	t.Helper()
	template := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), DNSNames: names, NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	der, err := x509.CreateCertificate(rand.Reader, template, s.cert, &key.PublicKey, s.key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

func keyPEM(t *testing.T, key *ecdsa.PrivateKey) string {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

// site is a proxy before an app that answers each line with itself.
type site struct {
	*signer
	t        *testing.T
	proxy    *proxy
	config   contract.ProxyConfig
	app      net.Listener
	accepted atomic.Int64 // by the app
	address  string       // of the TLS port
	served   chan error
}

func newSite(t *testing.T, idle time.Duration, change func(*contract.ProxyConfig)) *site {
	t.Helper()
	s := &site{signer: newSigner(t), t: t, served: make(chan error, 1), app: loopback.Listen(t)}
	go s.serveApp()
	l := loopback.Listen(t)
	s.address = l.Addr().String()
	s.config = contract.ProxyConfig{Address: "127.0.0.1", Ports: map[uint16]uint16{portOf(l): portOf(s.app), contract.InternalTLSPort: portOf(s.app)}}
	s.certified("instance-1")
	if change != nil {
		change(&s.config)
	}
	file := filepath.Join(t.TempDir(), "config.json")
	s.proxy = newProxy(&settings{file: file}, 1000)
	s.write()
	go func() { s.served <- s.proxy.serve([]*net.TCPListener{l.(*net.TCPListener)}, idle) }()
	return s
}

func portOf(l net.Listener) uint16 { return uint16(l.Addr().(*net.TCPAddr).Port) }

func (s *site) serveApp() {
	for {
		c, err := s.app.Accept()
		if err != nil {
			return
		}
		s.accepted.Add(1)
		go func() {
			defer c.Close()
			lines := bufio.NewScanner(c)
			for lines.Scan() {
				fmt.Fprintln(c, "app:", lines.Text())
			}
			fmt.Fprintln(c, "bye") // after the client has said all
		}()
	}
}

// certified gives the instance another key and certificates.
func (s *site) certified(name string) {
	key := newKey(s.t)
	s.config.Certificate, s.config.Key, s.config.InternalCertificate = s.certify(s.t, key, name), keyPEM(s.t, key), s.certify(s.t, key, name, "back.apps.internal")
}

// write replaces the settings as the daemon does.
func (s *site) write() {
	s.t.Helper()
	text, err := json.Marshal(s.config)
	if err == nil {
		err = os.WriteFile(s.proxy.settings.file+".new", text, 0o600)
	}
	if err == nil {
		err = os.Rename(s.proxy.settings.file+".new", s.proxy.settings.file)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// trusting is how a client of the test speaks.
func (s *site) trusting(name string) *tls.Config {
	c := &tls.Config{RootCAs: x509.NewCertPool(), ServerName: name}
	c.RootCAs.AddCert(s.cert)
	return c
}

// connect shakes hands and has one line answered.
func (s *site) connect(c *tls.Config) (*tls.Conn, error) {
	conn, err := tls.DialWithDialer(&net.Dialer{Timeout: time.Minute}, "tcp", s.address, c)
	if err != nil {
		return nil, err
	}
	s.t.Cleanup(func() { conn.Close() })
	return conn, ask(conn)
}

func ask(conn net.Conn) error {
	if _, err := fmt.Fprintln(conn, "hello"); err != nil {
		return err
	}
	line := make([]byte, len("app: hello\n"))
	if _, err := io.ReadFull(conn, line); err != nil {
		return err
	}
	if string(line) != "app: hello\n" {
		return fmt.Errorf("got %q", line)
	}
	return nil
}

func TestForwards(t *testing.T) {
	s := newSite(t, time.Hour, nil)
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		c := s.trusting("instance-1")
		c.MaxVersion = version
		conn, err := s.connect(c)
		if err != nil {
			t.Fatalf("%x: %v", version, err)
		}
		big := strings.Repeat("x", 40_000)
		go func() { fmt.Fprintln(conn, big) }()
		if got, err := bufio.NewReader(io.LimitReader(conn, int64(len("app: ")+len(big)+1))).ReadString('\n'); err != nil || got != "app: "+big+"\n" {
			t.Errorf("%x: got %d bytes, %v", version, len(got), err)
		}
		if err := conn.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if rest, err := io.ReadAll(conn); err != nil || string(rest) != "bye\n" {
			t.Errorf("%x: got %q, %v after all was said", version, rest, err)
		}
	}
	if _, err := s.connect(s.trusting("instance-2")); err == nil {
		t.Error("the certificate has another name")
	}
}

// The protocols of Diego's Envoy; a client with others goes on without.
func TestProtocols(t *testing.T) {
	s := newSite(t, time.Hour, nil)
	for offer, want := range map[string]string{"h2,http/1.1": "h2", "http/1.1": "http/1.1", "acme-tls/1": "", "": ""} {
		c := s.trusting("instance-1")
		if offer != "" {
			c.NextProtos = strings.Split(offer, ",")
		}
		conn, err := s.connect(c)
		if err != nil {
			t.Errorf("%s: %v", offer, err)
			continue
		}
		if got := conn.ConnectionState().NegotiatedProtocol; got != want {
			t.Errorf("%s: got %q; want %q", offer, got, want)
		}
	}
	old := s.trusting("instance-1")
	old.MinVersion, old.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
	if _, err := s.connect(old); err == nil {
		t.Error("TLS 1.1 was accepted")
	}
}

// A connection outlives its certificate, and the next sees the new one.
func TestRotation(t *testing.T) {
	s := newSite(t, time.Hour, nil)
	first, err := s.connect(s.trusting("instance-1"))
	if err != nil {
		t.Fatal(err)
	}
	s.certified("instance-2")
	s.write()
	if _, err := s.connect(s.trusting("instance-2")); err != nil {
		t.Errorf("the new certificate: %v", err)
	}
	if err := ask(first); err != nil {
		t.Errorf("the connection from before: %v", err)
	}
	s.config.Certificate = "damaged"
	s.write()
	if _, err := s.connect(s.trusting("instance-2")); err != nil {
		t.Errorf("with damaged settings: %v; want the last good ones", err)
	}
}

// The port for other containers shows their names, and asks for no certificate.
func TestInternalPort(t *testing.T) {
	s := newSite(t, time.Hour, func(c *contract.ProxyConfig) { c.ClientCAs = c.Certificate })
	now, err := s.proxy.settings.current()
	if err != nil {
		t.Fatal(err)
	}
	config, to, err := now.of(contract.InternalTLSPort)
	if err != nil || to != s.app.Addr().String() || config.ClientAuth != tls.NoClientCert || len(config.NextProtos) > 0 {
		t.Errorf("got %s, %v", to, err)
	}
	if got := config.Certificates[0].Leaf.DNSNames; len(got) != 2 || got[1] != "back.apps.internal" {
		t.Errorf("got %v", got)
	}
	if _, _, err := now.of(1); err == nil {
		t.Error("a port that leads nowhere was accepted")
	}
}

func TestClientCertificates(t *testing.T) {
	s := newSite(t, time.Hour, nil)
	clients, others := newSigner(t), newSigner(t)
	s.config.ClientCAs, s.config.ClientNames = clients.pem, []string{"gorouter.service.cf.internal", "ssh-proxy.service.cf.internal"}
	s.write()
	with := func(by *signer, names ...string) *tls.Config {
		key, c := newKey(t), s.trusting("instance-1")
		pair, err := tls.X509KeyPair([]byte(by.certify(t, key, names...)), []byte(keyPEM(t, key)))
		if err != nil {
			t.Fatal(err)
		}
		c.Certificates = []tls.Certificate{pair}
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
		return c
	}
	for name, c := range map[string]struct {
		config *tls.Config
		ok     bool
	}{
		"none":              {s.trusting("instance-1"), false},
		"another authority": {with(others, "gorouter.service.cf.internal"), false},
		"another name":      {with(clients, "app"), false},
		"no name":           {with(clients), false},
		"the first name":    {with(clients, "gorouter.service.cf.internal"), true},
		"the second name":   {with(clients, "x", "ssh-proxy.service.cf.internal"), true},
	} {
		if _, err := s.connect(c.config); (err == nil) != c.ok {
			t.Errorf("%s: got %v", name, err)
		}
	}
	s.config.ClientNames = nil
	s.write()
	if _, err := s.connect(with(clients, "app")); err != nil {
		t.Errorf("any name: %v", err)
	}
}

// Clients that say nothing, or no TLS, keep nobody out, and do not reach the app.
func TestHostileClients(t *testing.T) {
	s := newSite(t, time.Hour, nil)
	s.proxy.handshakes.mu.Lock() // it serves already
	s.proxy.handshakes.most = 20
	s.proxy.handshakes.mu.Unlock()
	var silent []net.Conn
	for n := range 50 {
		c, err := net.Dial("tcp", s.address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		switch n % 3 {
		case 0:
			fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		case 1:
			_, _ = c.Write([]byte{22, 3, 1}) // the beginning of a record, and no more
			silent = append(silent, c)
		default:
			silent = append(silent, c)
		}
	}
	if got := s.accepted.Load(); got != 0 {
		t.Errorf("the app was connected to %d times", got)
	}
	for range 30 {
		if _, err := s.connect(s.trusting("instance-1")); err != nil {
			t.Fatal(err)
		}
	}
	if got := s.accepted.Load(); got != 30 {
		t.Errorf("the app was connected to %d times; want 30", got)
	}
	closed := 0
	for _, c := range silent {
		_ = c.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
		if _, err := c.Read(make([]byte, 1)); err == io.EOF || err != nil && !os.IsTimeout(err) {
			closed++
		}
	}
	if want := len(silent) - 20; closed < want {
		t.Errorf("%d of the silent clients were closed; want at least %d", closed, want)
	}
}

// An app that does not listen fails the handshake, so that nothing was said yet.
func TestAppDoesNotListen(t *testing.T) {
	s := newSite(t, time.Hour, nil)
	s.app.Close()
	conn, err := tls.Dial("tcp", s.address, s.trusting("instance-1"))
	if err == nil {
		conn.Close()
		t.Fatal("the handshake succeeded")
	}
	if !strings.Contains(err.Error(), "internal error") {
		t.Errorf("got %v", err)
	}
}

// The proxy ends when it has had no client for a while, and not while it has one.
func TestIdle(t *testing.T) {
	s := newSite(t, 50*time.Millisecond, nil)
	conn, err := s.connect(s.trusting("instance-1"))
	if err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-s.served:
		t.Fatalf("it ended with a client: %v", err)
	case <-time.After(200 * time.Millisecond):
	}
	if err := ask(conn); err != nil {
		t.Error(err)
	}
	conn.Close()
	if err := <-s.served; err != nil {
		t.Error(err)
	}
}
