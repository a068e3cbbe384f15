package routing

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"cupola/server/acme/acmetest"
	"cupola/test/e2e"
	"cupola/test/loopback"
)

// TestACME gets a certificate for a mapped name from an ACME server that validates the
// name at the daemon's listeners, shows it after a restart without the server, and tells
// doctor of a name that the server refuses.
func TestACME(t *testing.T) {
	binary := e2e.NeedBinary(t)
	ports := loopback.FreePorts(t, 2)
	server := acmetest.Start(t, 3600, ports[0], ports[1])
	address := func(n int) string { return fmt.Sprintf("127.0.0.1:%d", ports[n]) }
	d := e2e.StartDaemon(t, binary, "--http", address(0), "--https", address(1), "--acme", "--acme-directory", server.Directory(), "--acme-ca-roots", server.WriteCA(t))
	d.PushProbe("probe")
	var shop struct{ GUID string }
	d.API("POST", "/v3/domains", e2e.Doc{"name": "shop.example"}, &shop)
	mapTo(d, "www", shop.GUID)
	var first *x509.Certificate
	e2e.Eventually(t, time.Minute, func() (problem string) {
		first, problem = fetchSecure(address(1), "www.shop.example", server.Roots())
		return problem
	})
	if _, problem := fetchSecure(address(1), "probe.localhost", server.Roots()); !strings.Contains(problem, "unknown authority") {
		t.Errorf("a name that is not public: got %q; want the certificate of the daemon's CA", problem)
	}
	server.Refuse(func(r *http.Request) (int, string) {
		if r.Method != "POST" {
			return 0, ""
		}
		return 429, `{"type": "urn:ietf:params:acme:error:rateLimited", "detail": "come back later", "status": 429}`
	})
	mapTo(d, "other", shop.GUID)
	e2e.Eventually(t, time.Minute, func() string {
		said, err := d.Run("doctor", "--data-dir", d.Dir)
		var exit interface{ ExitCode() int }
		if err != nil && !errors.As(err, &exit) || !strings.Contains(said, "no certificate by ACME for other.shop.example") || !strings.Contains(said, "come back later") {
			return fmt.Sprintf("%v: %s", err, said)
		}
		return ""
	})
	if orders := server.Orders(); orders > 3 {
		t.Errorf("the server got %d orders", orders)
	}
	d.Kill()
	server.Close()
	d.Start()
	e2e.Eventually(t, time.Minute, func() string {
		again, problem := fetchSecure(address(1), "www.shop.example", server.Roots())
		if problem == "" && !again.Equal(first) {
			t.Error("got another certificate after a restart")
		}
		return problem
	})
}

// fetchSecure asks the probe by a name on a new TLS connection.
func fetchSecure(addr, name string, roots *x509.CertPool) (leaf *x509.Certificate, problem string) {
	dialer := &tls.Dialer{NetDialer: &net.Dialer{Timeout: 10 * time.Second}, Config: &tls.Config{ServerName: name, RootCAs: roots}}
	conn, err := dialer.Dial("tcp", addr)
	if err != nil {
		return nil, err.Error()
	}
	defer conn.Close()
	fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", name)
	if text, err := io.ReadAll(conn); err != nil || !strings.Contains(string(text), "ready") {
		return nil, fmt.Sprintf("%v: %s", err, text)
	}
	return conn.(*tls.Conn).ConnectionState().PeerCertificates[0], ""
}
