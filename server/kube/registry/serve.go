package registry

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"cupola/runtime/authority"
	"cupola/runtime/fault"
	"cupola/server/bulkhead"
)

// How long a certificate is good for, and after what time another replaces it.
const (
	certificateLife    = 90 * 24 * time.Hour
	certificateRenewal = 30 * 24 * time.Hour
)

// Bounds of a connection. A layer may take long: nothing bounds an answer.
const (
	headTime  = 10 * time.Second
	idleTime  = time.Minute
	headBytes = 16 << 10
	// maxIdle bounds connections without a request under way, TLS handshakes among them: the oldest make room.
	maxIdle = 64
)

// Serve serves at the listener until ctx ends, with a certificate of the CA.
func (r *Registry) Serve(ctx context.Context, l net.Listener, ca func() (*authority.Authority, error), log *slog.Logger) error {
	current, err := authority.NewRenewed(certificateRenewal, func() (*tls.Certificate, error) { return r.certificate(ca) }, log)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: r.Handler(), ReadHeaderTimeout: headTime, IdleTimeout: idleTime, MaxHeaderBytes: headBytes, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		BaseContext: func(net.Listener) context.Context { return ctx }}
	bulkhead.Watch(server, maxIdle)
	fault.Hooks("registry", server)
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	config := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return current.Get(), nil }}
	if err := server.Serve(tls.NewListener(fault.Listener("registry", l), config)); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// certificate is one for the host of the address.
func (r *Registry) certificate(ca func() (*authority.Authority, error)) (*tls.Certificate, error) {
	by, err := ca()
	if err != nil {
		return nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	host, _, err := net.SplitHostPort(r.Address)
	if err != nil {
		return nil, err
	}
	c := x509.Certificate{Subject: pkix.Name{CommonName: "cupola registry"}, NotAfter: time.Now().Add(certificateLife),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	if ip := net.ParseIP(host); ip != nil {
		c.IPAddresses = []net.IP{ip}
	} else {
		c.DNSNames = []string{host}
	}
	chain, err := by.Issue(c, &key.PublicKey)
	if err != nil {
		return nil, fmt.Errorf("sign the certificate of the registry: %w", err)
	}
	return &tls.Certificate{Certificate: chain, PrivateKey: key}, nil
}
