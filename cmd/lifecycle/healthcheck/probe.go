// Package healthcheck probes an app from inside its container. Flags, texts
// and exit codes are those of Diego's healthcheck.
package healthcheck

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// Exit codes, Diego's.
const (
	exitNoInterface = 3
	exitRefused     = 4
	exitHTTPRefused = 5
	exitStatus      = 6
	exitTimeout     = 64
	exitHTTPTimeout = 65
	exitUnknown     = 127
)

// failure is a probe's verdict with Diego's text and exit code.
type failure struct {
	code int
	text string
}

func (f failure) Error() string { return f.text }

// probe asks one address.
type probe struct {
	network string
	uri     string // empty probes the port alone
	port    string
	timeout time.Duration
}

// check probes the container's own address, since an app that listens on the
// loopback interface alone cannot be reached.
func (p probe) check(ctx context.Context) error {
	ip, err := ownAddress()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	if p.uri == "" {
		return p.checkPort(ctx, ip)
	}
	return p.checkHTTP(ctx, ip)
}

func ownAddress() (string, error) {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return "", failure{1, fmt.Sprintf("Failed to get interfaces: %v", err)}
	}
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok && !n.IP.IsLoopback() && n.IP.To4() != nil {
			return n.IP.String(), nil
		}
	}
	return "", failure{exitNoInterface, "failure to find suitable interface"}
}

func (p probe) checkPort(ctx context.Context, ip string) error {
	addr := net.JoinHostPort(ip, p.port)
	var d net.Dialer
	conn, err := d.DialContext(ctx, p.network, addr)
	if err == nil {
		return conn.Close()
	}
	if isTimeout(err) {
		return failure{exitTimeout, fmt.Sprintf("failed to make TCP connection to %s: timed out after %.2f seconds", addr, p.timeout.Seconds())}
	}
	return failure{exitRefused, fmt.Sprintf("failed to make TCP connection to %s: %v", addr, err)}
}

// checkHTTP passes on status 200 alone.
func (p probe) checkHTTP(ctx context.Context, ip string) error {
	request := fmt.Sprintf("failed to make HTTP request to '%s' on port %s: ", p.uri, p.port)
	started := time.Now()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(ip, p.port)+p.uri, nil)
	if err != nil {
		return failure{exitStatus, fmt.Sprintf("failed to create an HTTP request to '%s' on port %s", p.uri, p.port)}
	}
	req.Header.Set("User-Agent", "diego-healthcheck")
	req.Header.Set("X-Forwarded-Proto", "https")
	res, err := http.DefaultClient.Do(req)
	if isTimeout(err) {
		return failure{exitHTTPTimeout, fmt.Sprintf("%stimed out after %.2f seconds", request, p.timeout.Seconds())}
	}
	if err != nil {
		return failure{exitHTTPRefused, request + "connection refused"}
	}
	defer res.Body.Close()
	took := time.Since(started)
	// Read to the end, so that the app does not log a broken connection.
	_, _ = io.Copy(io.Discard, res.Body)
	if res.StatusCode != http.StatusOK {
		return failure{exitStatus, fmt.Sprintf("%sreceived status code %d in %dms", request, res.StatusCode, took.Milliseconds())}
	}
	return nil
}

func isTimeout(err error) bool {
	e, ok := errors.AsType[net.Error](err)
	return ok && e.Timeout()
}
