package router

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"sync"
)

// BackendTLS says how the router speaks TLS to instances (gorouter: backends).
type BackendTLS struct {
	// Authorities vouch for instances, in PEM.
	Authorities func() []byte
	// Certificate is what the router shows instances that ask for one.
	Certificate func() *tls.Certificate
}

// authorities are the ones of now, parsed once as long as they stay the same.
type authorities struct {
	mu   sync.Mutex
	text string
	pool *x509.CertPool
}

func (a *authorities) of(text []byte) *x509.CertPool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.pool == nil || a.text != string(text) {
		a.text, a.pool = string(text), x509.NewCertPool()
		a.pool.AppendCertsFromPEM(text)
	}
	return a.pool
}

// securing makes connections to an instance that the instance has proven to be its
// own: its certificate names its GUID (gorouter: server_cert_domain_san).
func (r *Router) securing(e Endpoint, dial dialFunc) dialFunc {
	if !r.secures(e) {
		return dial
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, r.config.Timeouts.Dial)
		defer cancel()
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		secure := tls.Client(conn, r.tlsConfig(e))
		if err := secure.HandshakeContext(ctx); err != nil {
			_ = conn.Close() // the handshake's error says more
			return nil, &handshakeError{err}
		}
		return &secureConn{Conn: secure}, nil
	}
}

// secureConn is a connection to an instance whose writes fail with the alert that the
// instance sent. With TLS 1.3 the router is already writing when the instance refuses its
// certificate and closes the connection: the write can meet the reset before the alert is read,
// or the end that the reader of the alert made of the connection.
type secureConn struct {
	*tls.Conn
	mu    sync.Mutex // held while something is read
	ahead []byte     // was read by Write
}

// Read reads what the instance sends.
func (c *secureConn) Read(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.ahead) > 0 {
		n := copy(p, c.ahead)
		c.ahead = c.ahead[n:]
		return n, nil
	}
	return c.Conn.Read(p)
}

// Write writes all of p. Reading from a connection that was reset or closed does not wait.
func (c *secureConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	if err == nil || !hungUp(err) && !errors.Is(err, net.ErrClosed) {
		return n, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var b [1]byte
	m, alert := c.Conn.Read(b[:])
	if c.ahead = append(c.ahead, b[:m]...); refusedUs(alert) {
		return n, alert
	}
	return n, err
}

type dialFunc = func(ctx context.Context, network, address string) (net.Conn, error)

// secures reports whether the router speaks TLS to an endpoint.
func (r *Router) secures(e Endpoint) bool { return r.config.Backends != nil && e.TLSAddress != "" }

func (r *Router) tlsConfig(e Endpoint) *tls.Config {
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: e.InstanceGUID, RootCAs: r.authorities.of(r.config.Backends.Authorities())}
	if e.Protocol == HTTP2 {
		c.NextProtos = []string{"h2"}
	}
	c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		return r.config.Backends.Certificate(), nil
	}
	return c
}

// handshakeError is why a handshake with an instance failed: nothing was said to it yet.
type handshakeError struct{ error }

func (e *handshakeError) Unwrap() error { return e.error }

// handshakeFailed reports whether an instance did not come to be spoken to: with TLS 1.3
// it refuses the router's certificate when the router has already begun.
func handshakeFailed(err error) bool {
	if _, ok := errors.AsType[*handshakeError](err); ok {
		return true
	}
	return refusedUs(err)
}

// refusedUs reports whether the instance refused the router's certificate (gorouter:
// fails.RemoteFailedCertCheck).
func refusedUs(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	if !ok || op.Op != "remote error" {
		return false
	}
	switch op.Err.Error() {
	case "tls: bad certificate", "tls: unknown certificate authority", "tls: certificate required":
		return true
	}
	return false
}

// isImpostor reports whether what listens at an instance's address is another, or not
// known to be the instance. (gorouter also prunes endpoints that it cannot reach.)
func isImpostor(err error) bool {
	_, is := errors.AsType[*tls.CertificateVerificationError](err)
	return is
}

// tlsFailure is gorouter's answer for a failed handshake (proxy/round_tripper/error_handler.go).
func tlsFailure(err error) (status int, text string) {
	const notTLS, untrusted, needsOurs = 525, 526, 496
	var op *net.OpError
	switch {
	case errors.As(err, new(tls.RecordHeaderError)):
		return notTLS, "525 SSL Handshake Failed"
	case errors.As(err, new(x509.HostnameError)):
		return http.StatusServiceUnavailable, "503 Service Unavailable"
	case isImpostor(err):
		return untrusted, "526 Invalid SSL Certificate"
	case refusedUs(err):
		return needsOurs, "496 SSL Certificate Required"
	case errors.As(err, &op) && op.Error() == "remote error: tls: handshake failure":
		return notTLS, "525 SSL Handshake Failed"
	}
	return http.StatusBadGateway, "502 Bad Gateway: Registered endpoint failed to handle the request."
}
