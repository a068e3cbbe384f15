package e2e

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// DialInstance connects to a TLS port of an instance, whose certificate has to have the
// name.
func (d *Daemon) DialInstance(host string, port int, name string) (*tls.Conn, error) {
	d.T.Helper()
	roots := x509.NewCertPool()
	text, err := os.ReadFile(filepath.Join(d.Dir, "identity", "ca.crt"))
	if err != nil || !roots.AppendCertsFromPEM(text) {
		d.T.Fatalf("the authority of instances: %v", err)
	}
	ctx, cancel := context.WithTimeout(d.T.Context(), time.Minute)
	defer cancel()
	conn, err := (&tls.Dialer{Config: &tls.Config{RootCAs: roots, ServerName: name}}).DialContext(ctx, "tcp", fmt.Sprintf("%s:%d", host, port))
	if err != nil {
		return nil, err
	}
	secure := conn.(*tls.Conn)
	d.T.Cleanup(func() { secure.Close() })
	return secure, nil
}
