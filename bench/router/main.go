// Command router measures cupola's router beside nginx and haproxy as plain proxies to the
// same backend: each kind of traffic by turns, the median of some rounds. It needs wrk,
// h2load, nginx and haproxy, and uses the loopback only.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"cupola/bench/report"
	"cupola/server/bulkhead"
	"cupola/server/router"
)

func main() {
	rounds := flag.Int("rounds", 5, "how often each is measured")
	seconds := flag.Int("seconds", 2, "how long each time")
	only := flag.String("only", "", "the kinds of traffic to measure, with commas; empty is all of "+strings.Join(names(kinds("")), ","))
	serve := flag.String("serve", "", "internal: be the router, for the backend at this address")
	certificate := flag.String("certificate", "", "internal: the directory of the router's certificate")
	app := flag.Bool("app", false, "internal: be a backend that takes bodies and websockets")
	flag.Parse()
	report.Main(time.Hour, func(ctx context.Context) error {
		switch {
		case *app:
			return serveApp()
		case *serve != "":
			return serveRouter(*serve, *certificate)
		}
		return measure(ctx, *only, *rounds, time.Duration(*seconds)*time.Second)
	})
}

// serveRouter routes all to the backend, with TLS if it has the directory of a
// certificate. It says where on stdout, and goes on until its stdin ends.
func serveRouter(backend, certificate string) error {
	secure, err := tlsConfig(certificate)
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	line := func(e router.AccessEntry) { _ = append([]byte(nil), e.Line...) } // as a log that keeps it
	limits, err := bulkhead.ProcessLimits()
	if err != nil {
		return err
	}
	gate := router.NewGate(limits)
	r := router.New(router.Config{Log: log, AccessLog: line, DistrustForwarded: true, Gate: gate})
	r.Set(router.Table{Routes: []router.Route{{
		Host:      "127.0.0.1", // wrk sends the address
		Endpoints: []router.Endpoint{{Address: backend, AppGUID: "app", InstanceGUID: "instance"}},
	}}})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	announce(l)
	return router.NewServer(r, log, router.Timeouts{}).Serve(r.Ahead(router.Guard(l, secure, gate), router.Direct{Handler: r}))
}

// announce says on stdout where a process listens, which ends with its stdin.
func announce(l net.Listener) {
	fmt.Println(l.Addr())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
}

// measure measures the kinds of traffic that only names.
func measure(ctx context.Context, only string, rounds int, length time.Duration) error {
	dir, err := os.MkdirTemp("", "bench-router-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := prepare(dir); err != nil {
		return err
	}
	page, err := startNginx(ctx, dir, "backend", func(addr string) string { return backendConfig(addr, dir) })
	if err != nil {
		return err
	}
	defer page.stop()
	app, err := startSelf(ctx, "app", "-app")
	if err != nil {
		return err
	}
	defer app.stop()
	for _, k := range kinds(dir) {
		if only != "" && !strings.Contains(","+only+",", ","+k.name+",") {
			continue
		}
		backend := page
		if k.app {
			backend = app
		}
		fmt.Printf("%s, median of %d × %v by turns:\n\n", k.title, rounds, length)
		if err := k.measure(ctx, dir, backend, rounds, length); err != nil {
			return err
		}
	}
	return nil
}

// measure measures one kind of traffic with each server.
func (k kind) measure(ctx context.Context, dir string, backend *process, rounds int, length time.Duration) error {
	certificate := ""
	if k.secure {
		certificate = dir
	}
	targets, base := []*process{}, 0
	if k.direct {
		targets, base = append(targets, backend), 1
	}
	for _, start := range []func(ctx context.Context, dir, backend, certificate string) (*process, error){startProxy, startHAProxy, startRouter} {
		p, err := start(ctx, dir, backend.addr, certificate)
		if err != nil {
			return err
		}
		defer p.stop()
		p.scheme = scheme(k.secure)
		targets = append(targets, p)
	}
	return compare(ctx, k, targets, base, rounds, length)
}

// waitFor returns once something listens at addr.
func waitFor(ctx context.Context, addr string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	for {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("nothing listens at %s: %w", addr, err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// freeAddr returns a loopback address on which nothing listens.
func freeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

func startRouter(ctx context.Context, _, backend, certificate string) (*process, error) {
	return startSelf(ctx, "cupola", "-serve", backend, "-certificate", certificate)
}

// startSelf starts this program with other arguments.
func startSelf(ctx context.Context, name string, args ...string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, args...)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{name: name, scheme: scheme(false), pid: cmd.Process.Pid, stop: func() { stdin.Close(); _ = cmd.Wait() }}
	if _, err := fmt.Fscanln(stdout, &p.addr); err != nil {
		p.stop()
		return nil, err
	}
	return p, waitFor(ctx, p.addr)
}

func startProxy(ctx context.Context, dir, backend, certificate string) (*process, error) {
	return startNginx(ctx, dir, "nginx", func(addr string) string { return proxyConfig(addr, backend, certificate) })
}

func startNginx(ctx context.Context, dir, name string, config func(addr string) string) (*process, error) {
	return startServer(ctx, name, func(addr string) (*exec.Cmd, error) {
		prefix := filepath.Join(dir, name)
		if err := os.MkdirAll(prefix, 0o755); err != nil {
			return nil, err
		}
		file := filepath.Join(prefix, "nginx.conf")
		return exec.CommandContext(ctx, "nginx", "-p", prefix, "-c", file, "-e", "stderr"), os.WriteFile(file, []byte(config(addr)), 0o644)
	})
}

func startHAProxy(ctx context.Context, dir, backend, certificate string) (*process, error) {
	return startServer(ctx, "haproxy", func(addr string) (*exec.Cmd, error) {
		file := filepath.Join(dir, "haproxy.conf")
		return exec.CommandContext(ctx, "haproxy", "-db", "-q", "-f", file), os.WriteFile(file, []byte(haproxyConfig(addr, backend, certificate)), 0o644)
	})
}

// startServer starts a server at a free address.
func startServer(ctx context.Context, name string, command func(addr string) (*exec.Cmd, error)) (*process, error) {
	addr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	cmd, err := command(addr)
	if err != nil {
		return nil, err
	}
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{name: name, scheme: scheme(false), addr: addr, pid: cmd.Process.Pid, stop: func() { _ = cmd.Process.Signal(os.Interrupt); _ = cmd.Wait() }}
	if err := waitFor(ctx, addr); err != nil {
		p.stop()
		return nil, err
	}
	return p, nil
}

func scheme(secure bool) string {
	if secure {
		return "https"
	}
	return "http"
}
