package main

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"cupola/runtime/contract"
)

// maxReferences bounds a repository's list of references, which is read into
// memory whole. Bytes.
const maxReferences = 32 << 20

// newClient makes a client that uses the proxies of the environment, which the
// staging environment group may set, and trusts what apps on the stack trust. A
// password in a URL is sent to no other server that this one redirects to:
// net/http and go-git see to that.
func newClient() *http.Client {
	d := &net.Dialer{Timeout: 30 * time.Second}
	return &http.Client{Transport: bounded{&http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: d.DialContext, ForceAttemptHTTP2: true,
		TLSClientConfig:     &tls.Config{RootCAs: roots(os.Getenv(contract.EnvCertificates))},
		TLSHandshakeTimeout: 30 * time.Second, ResponseHeaderTimeout: 2 * time.Minute, IdleConnTimeout: time.Minute,
	}}}
}

// roots are the certificate authorities of the stack and those in a directory.
func roots(dir string) *x509.CertPool {
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if dir == "" {
		return pool
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*"))
	for _, name := range files {
		if text, err := os.ReadFile(name); err == nil {
			pool.AppendCertsFromPEM(text)
		}
	}
	return pool
}

// bounded turns answers that are errors into errors, unread, and cuts off lists
// of references.
type bounded struct{ next http.RoundTripper }

func (b bounded) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := b.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	switch {
	case res.StatusCode >= http.StatusBadRequest:
		_ = res.Body.Close() // nothing of it was read
		return nil, statusError(res.StatusCode)
	case strings.HasSuffix(req.URL.Path, "/info/refs"):
		res.Body = cutBody{io.LimitReader(res.Body, maxReferences), res.Body}
	}
	return res, nil
}

type cutBody struct {
	io.Reader
	io.Closer
}
