package health

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"cupola/runtime/fault"
	"cupola/runtime/lrp"
)

type dialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// prober looks at one container once. Its zero dial is net.Dialer's.
type prober struct {
	address netip.Addr
	dial    dialFunc
	exec    func(context.Context, lrp.Run) error
	starved func() time.Duration // as Spec's
}

// probe runs one check; the error's text is Diego's, nil means it passed. A probe that took too long while the container waited for a
// processor is asked again, with as much more time.
func (p prober) probe(ctx context.Context, c lrp.Check) (err error) {
	clock, limit := &clock{starved: p.starved, length: c.InvocationTimeout}, time.Duration(0)
	if p.starved != nil { // most answers come before there is a reason to look
		const part = 10
		looks := time.AfterFunc(c.InvocationTimeout/part, fault.Func("health", func() { clock.begin(c.InvocationTimeout * (part - 1) / part) }))
		defer looks.Stop()
	}
	for more := clock.length; more > 0; more = clock.more() {
		limit += more
		within, cancel := context.WithTimeout(ctx, limit)
		err = p.once(within, c)
		late := within.Err() != nil
		cancel()
		if err == nil || !late || ctx.Err() != nil {
			break
		}
	}
	return err
}

func (p prober) once(ctx context.Context, c lrp.Check) error {
	switch c.Type {
	case lrp.CheckHTTP:
		return p.http(ctx, c)
	case lrp.CheckExec:
		return p.program(ctx, c)
	case lrp.CheckGRPC:
		return p.grpc(ctx, c)
	}
	return p.tcp(ctx, c)
}

// program runs the program of a check.
func (p prober) program(ctx context.Context, c lrp.Check) error {
	if p.exec == nil || c.Run == nil {
		return errors.New("there is no program to run")
	}
	err := p.exec(ctx, *c.Run)
	if err != nil && ctx.Err() == context.DeadlineExceeded {
		return fmt.Errorf("%s timed out after %.2f seconds", c.Run.Path, c.InvocationTimeout.Seconds())
	}
	return err
}

func (p prober) tcp(ctx context.Context, c lrp.Check) error {
	address := netip.AddrPortFrom(p.address, c.Port).String()
	conn, err := p.dial(ctx, "tcp", address)
	if err == nil {
		conn.Close()
		return nil
	}
	if timedOut(err) {
		return fmt.Errorf("failed to make TCP connection to %s: timed out after %.2f seconds", address, c.InvocationTimeout.Seconds())
	}
	return fmt.Errorf("failed to make TCP connection to %s: %v", address, err)
}

// http asks as Diego's healthcheck does: only 200 passes, redirects are
// followed. They lead back into the container, whatever host they name: Diego
// probes from inside of it, and an app must not aim the daemon at other hosts.
func (p prober) http(ctx context.Context, c lrp.Check) error {
	path := c.Path
	if !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	what := fmt.Sprintf("failed to make HTTP request to '%s' on port %d", c.Path, c.Port)
	scheme := "http://"
	if c.TLS {
		scheme = "https://"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+netip.AddrPortFrom(p.address, c.Port).String()+path, nil)
	if err != nil {
		return fmt.Errorf("failed to create an HTTP request to '%s' on port %d", c.Path, c.Port)
	}
	req.Header.Set("User-Agent", "diego-healthcheck")
	req.Header.Set("X-Forwarded-Proto", "https")
	setHeaders(req, c)
	began := time.Now()
	status, err := p.get(req)
	switch {
	case err != nil && timedOut(err):
		return fmt.Errorf("%s: timed out after %.2f seconds", what, c.InvocationTimeout.Seconds())
	case err != nil:
		return fmt.Errorf("%s: connection refused", what)
	case status < http.StatusOK || status > max(c.MaxStatus, http.StatusOK):
		return fmt.Errorf("%s: received status code %d in %dms", what, status, time.Since(began).Milliseconds())
	}
	return nil
}

// maxProbeBody bounds what a probe reads of an answer; the rest is cut off.
const maxProbeBody = 1 << 20

func (p prober) get(req *http.Request) (int, error) {
	// As the kubelet's, no probe asks who signed the container's certificate.
	unverified := &tls.Config{InsecureSkipVerify: true, ServerName: hostName(req.Host)} //nolint:gosec // see above
	transport := &http.Transport{DisableKeepAlives: true, DisableCompression: true, DialContext: fault.Dial("health", p.dialInside), TLSClientConfig: unverified}
	defer transport.CloseIdleConnections()
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	// Read on, so that the server sees its answer taken; an error here is not a verdict.
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxProbeBody))
	return resp.StatusCode, nil
}

// setHeaders adds what the check says of the request. Host is a header, too.
func setHeaders(req *http.Request, c lrp.Check) {
	if c.Host != "" {
		req.Host = c.Host
	}
	given := http.Header{}
	for _, h := range c.Headers {
		if strings.EqualFold(h.Name, "Host") {
			req.Host = h.Value
			continue
		}
		given.Add(h.Name, h.Value)
	}
	maps.Copy(req.Header, given)
}

// hostName is a Host header without its port.
func hostName(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return host
}

// dialInside dials the container, at the port that was asked for.
func (p prober) dialInside(ctx context.Context, network, address string) (net.Conn, error) {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	return p.dial(ctx, network, net.JoinHostPort(p.address.String(), port))
}

func timedOut(err error) bool {
	var timeout net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout()
}
