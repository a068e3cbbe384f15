package e2e

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// AsInstance is a client of the HTTPS listener that asks for a host, and shows the certificate that
// the container of an app (testdata/probe) has.
func (d *Daemon) AsInstance(app, host string) *http.Client {
	d.T.Helper()
	read := func(name string) []byte {
		_, body, err := d.Get(app+".localhost", "/file?path=/etc/cf-instance-credentials/"+name)
		if err != nil {
			d.T.Fatal(err)
		}
		return []byte(body[strings.Index(body, "-----BEGIN"):])
	}
	pair, err := tls.X509KeyPair(read("instance.crt"), read("instance.key"))
	if err != nil {
		d.T.Fatal(err)
	}
	ca, err := os.ReadFile(filepath.Join(d.Dir, "ca.pem"))
	if err != nil {
		d.T.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	return &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true,
		TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: host, Certificates: []tls.Certificate{pair}}}}
}

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
