package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// supervised is a daemon that a service manager runs: it holds the socket and
// the daemon takes it, and waits for what the daemon says.
type supervised struct {
	*daemon
	program string
	socket  *os.File
	notify  *net.UnixConn
	ended   chan error // of the process
}

// supervise takes the place of systemd for a daemon that was not started yet.
func supervise(t *testing.T, d *daemon, program string) *supervised {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d.addr = l.Addr().String()
	s := &supervised{daemon: d, program: program}
	if s.socket, err = l.(*net.TCPListener).File(); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil { // the file is another
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "notify")
	if s.notify, err = net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.socket.Close(); s.notify.Close() })
	return s
}

// Stop ends the daemon as systemd does.
func (s *supervised) Stop(context.Context) error {
	if s.ended == nil {
		return nil // it does not run, or somebody else started it
	}
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-s.ended // how is no matter
	s.ended = nil
	return nil
}

// Restart returns when the daemon says that it is ready, or has ended.
func (s *supervised) Restart(ctx context.Context) error {
	if err := s.Stop(ctx); err != nil {
		return err
	}
	script := `LISTEN_PID=$$ exec "$0" serve --data-dir "$1" --https off --ssh off --admin-password "$2"`
	s.cmd = exec.Command("sh", "-c", script, s.program, s.dir, adminPassword)
	s.cmd.Env = append(os.Environ(), "LISTEN_FDS=1", "LISTEN_FDNAMES=http", "NOTIFY_SOCKET="+s.notify.LocalAddr().String())
	s.cmd.ExtraFiles = []*os.File{s.socket}
	s.cmd.Stdout, s.cmd.Stderr = io.Discard, s.log
	if err := s.cmd.Start(); err != nil {
		return err
	}
	s.ended = make(chan error, 1)
	go func(cmd *exec.Cmd, ended chan<- error) { ended <- cmd.Wait() }(s.cmd, s.ended)
	for {
		said, err := s.said(30 * time.Second)
		if err != nil || said == "READY=1" {
			return err
		}
	}
}

// said is the next that the daemon says.
func (s *supervised) said(within time.Duration) (string, error) {
	var b [256]byte
	for end := time.Now().Add(within); time.Now().Before(end); {
		if err := s.notify.SetReadDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
			return "", err
		}
		n, err := s.notify.Read(b[:])
		if err == nil {
			return string(b[:n]), nil
		}
		select {
		case err := <-s.ended:
			s.ended = nil
			return "", fmt.Errorf("it ended: %w", err)
		default:
		}
	}
	return "", fmt.Errorf("it said nothing for %v", within)
}

// requests asks an app until ctx ends, a new connection each time.
func (s *supervised) requests(ctx context.Context, app string, sent *atomic.Int64, failed chan<- string) {
	client := &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	for ctx.Err() == nil {
		req, err := http.NewRequestWithContext(context.Background(), "GET", "http://"+s.addr+"/health", nil)
		if err != nil {
			failed <- err.Error()
			return
		}
		req.Host = app + ".localhost"
		res, err := client.Do(req)
		if err == nil {
			_, err = io.Copy(io.Discard, res.Body)
			err = errors.Join(err, res.Body.Close())
			if res.StatusCode != http.StatusOK {
				err = errors.New(res.Status)
			}
		}
		sent.Add(1)
		if err != nil {
			select {
			case failed <- err.Error():
			default:
			}
		}
	}
}

// script writes a program for a shell.
func shellProgram(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"+text), 0o755); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestAnUpgradeFailsNoRequest upgrades a daemon whose socket is held by its
// manager, while an app is asked: no request fails and the instance stays, also
// when the new binary does not come up and the old one is brought back.
func TestAnUpgradeFailsNoRequest(t *testing.T) {
	binary := needBinary(t)
	d := startDaemon(t, binary)
	if out, err := d.run("push", example(t, "node")); err != nil {
		t.Fatalf("push: %v\n%s", err, out)
	}
	before := d.running("hello-node", "web", 1)
	d.kill()
	program := filepath.Join(t.TempDir(), "cupola")
	if err := copyProgram(binary, program); err != nil {
		t.Fatal(err)
	}
	s := supervise(t, d, program)
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var sent atomic.Int64
	failed := make(chan string, 1)
	for range 4 {
		go s.requests(ctx, "hello-node", &sent, failed)
	}
	var out strings.Builder
	t.Cleanup(func() { s.Stop(context.Background()) })
	u := &upgrade{binary: program, dataDir: d.dir, service: s, out: &out}
	if err := u.run(t.Context(), binary); err != nil || !strings.Contains(out.String(), "Upgraded to ") {
		t.Errorf("got %v, %q", err, out.String())
	}
	for want, file := range map[string]string{
		"nothing was changed":                         shellProgram(t, "echo something else"),
		"and nothing was changed":                     shellProgram(t, "exit 3"),
		"did not come up, and the old one runs again": shellProgram(t, `[ "$1" = version ] && echo "cupola 9.9 (CF)" && exit; echo no >&2; exit 1`),
	} {
		if err := u.run(t.Context(), file); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v; want %q", err, want)
		}
	}
	n := sent.Load()
	eventually(t, 10*time.Second, func() string {
		if sent.Load() < n+20 {
			return "nobody answers"
		}
		return ""
	})
	cancel()
	select {
	case err := <-failed:
		t.Errorf("a request of %d failed: %s", sent.Load(), err)
	default:
	}
	if after := d.running("hello-node", "web", 1); after[0].InstanceGUID != before[0].InstanceGUID {
		t.Errorf("the instance was replaced")
	}
	if version, err := versionOf(t.Context(), program); err != nil || version == "9.9" {
		t.Errorf("got the version %q, %v", version, err)
	}
}
