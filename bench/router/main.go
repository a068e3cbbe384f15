// Command router measures cupola's router beside nginx as a plain proxy to the
// same backend: wrk at 1, 8, 64 and 256 connections by turns, the median of some rounds. It needs wrk and nginx, and uses the loopback only.
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
	"syscall"
	"time"

	"cupola/bench/report"
	"cupola/server/bulkhead"
	"cupola/server/router"
)

func main() {
	rounds := flag.Int("rounds", 5, "how often each is measured")
	seconds := flag.Int("seconds", 4, "how long each time")
	serve := flag.String("serve", "", "internal: be the router, for the backend at this address")
	certificate := flag.String("certificate", "", "internal: the directory of the router's certificate")
	flag.Parse()
	report.Main(time.Hour, func(ctx context.Context) error {
		if *serve != "" {
			return serveRouter(*serve, *certificate)
		}
		return measure(ctx, *rounds, *seconds)
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
	fmt.Println(l.Addr())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	return router.NewServer(r, log, router.Timeouts{}).Serve(r.Ahead(router.Guard(l, secure, gate), router.Direct{}))
}

func measure(ctx context.Context, rounds, seconds int) error {
	dir, err := os.MkdirTemp("", "bench-router-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	backend, err := startNginx(ctx, dir, "backend", backendConfig)
	if err != nil {
		return err
	}
	defer backend.stop()
	if err := comparePlain(ctx, dir, backend, rounds, seconds); err != nil {
		return err
	}
	return compareTLS(ctx, dir, backend, rounds, seconds)
}

func comparePlain(ctx context.Context, dir string, backend *process, rounds, seconds int) error {
	nginx, err := startNginx(ctx, dir, "proxy", func(addr string) string { return proxyConfig(addr, backend.addr) })
	if err != nil {
		return err
	}
	defer nginx.stop()
	ours, err := startRouter(ctx, backend.addr)
	if err != nil {
		return err
	}
	defer ours.stop()
	fmt.Printf("Requests of a small page, median of %d × %ds by turns:\n\n", rounds, seconds)
	return compare(ctx, []*process{backend, nginx, ours}, 1, []int{1, 8, 64, 256}, rounds, time.Duration(seconds)*time.Second)
}

func compareTLS(ctx context.Context, dir string, backend *process, rounds, seconds int) error {
	if err := makeCertificate(dir); err != nil {
		return err
	}
	nginx, err := startNginx(ctx, dir, "secure", func(addr string) string { return secureConfig(addr, backend.addr, dir) })
	if err != nil {
		return err
	}
	defer nginx.stop()
	ours, err := startRouter(ctx, backend.addr, "-certificate", dir)
	if err != nil {
		return err
	}
	defer ours.stop()
	fmt.Printf("\nThe same with TLS 1.3 to the client, on kept connections:\n\n")
	return compare(ctx, []*process{nginx, ours}, 0, []int{1, 64}, rounds, time.Duration(seconds)*time.Second)
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

func startRouter(ctx context.Context, backend string, args ...string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, append([]string{"-serve", backend}, args...)...)
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
	p := &process{name: "cupola", scheme: scheme(len(args) > 0), pid: cmd.Process.Pid, stop: func() { stdin.Close(); _ = cmd.Wait() }}
	if _, err := fmt.Fscanln(stdout, &p.addr); err != nil {
		p.stop()
		return nil, err
	}
	return p, waitFor(ctx, p.addr)
}

func startNginx(ctx context.Context, dir, name string, config func(addr string) string) (*process, error) {
	addr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	prefix := filepath.Join(dir, name)
	if err := os.MkdirAll(prefix, 0o755); err != nil {
		return nil, err
	}
	file := filepath.Join(prefix, "nginx.conf")
	if err := os.WriteFile(file, []byte(config(addr)), 0o644); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, "nginx", "-p", prefix, "-c", file, "-e", "stderr")
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{name: name, scheme: scheme(name == "secure"), addr: addr, pid: cmd.Process.Pid, stop: func() { _ = cmd.Process.Signal(os.Interrupt); _ = cmd.Wait() }}
	if name != "backend" {
		p.name = "nginx"
	}
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
