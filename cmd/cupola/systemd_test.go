package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
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
	args    []string // beside those that all have
	socket  *os.File
	notify  *net.UnixConn
	ended   chan error // of the process
	states  chan string

	mu   sync.Mutex
	kept map[string]*os.File // sockets that the daemon gave, by name
}

// supervise takes the place of systemd for a daemon that was not started yet.
func supervise(t *testing.T, d *daemon, program string) *supervised {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d.addr = l.Addr().String()
	s := &supervised{daemon: d, program: program, states: make(chan string, 1000), kept: map[string]*os.File{}}
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
	t.Cleanup(func() {
		s.socket.Close()
		s.notify.Close()
		for _, f := range s.keeps() {
			f.Close()
		}
	})
	go s.listen()
	return s
}

// listen hears what the daemon says, as systemd does.
func (s *supervised) listen() {
	for {
		var b, oob [256]byte
		n, m, _, _, err := s.notify.ReadMsgUnix(b[:], oob[:])
		if err != nil {
			return // the test has ended
		}
		s.hear(string(b[:n]), fileOf(oob[:m]))
	}
}

// hear keeps, forgets, or hands on. Whoever sent a barrier waits for the end of
// its file.
func (s *supervised) hear(text string, f *os.File) {
	s.mu.Lock()
	defer s.mu.Unlock()
	first, rest, _ := strings.Cut(text, "\n")
	name := strings.TrimPrefix(rest, "FDNAME=")
	switch {
	case first == "FDSTORE=1" && s.kept[name] == nil:
		s.kept[name] = f
	case first == "FDSTOREREMOVE=1" && s.kept[name] != nil:
		s.kept[name].Close()
		delete(s.kept, name)
	case f != nil: // a barrier, or one that is kept already
		f.Close()
	default:
		s.states <- first
	}
}

// fileOf is the file that came with a message; nil for none.
func fileOf(oob []byte) *os.File {
	messages, err := syscall.ParseSocketControlMessage(oob)
	if err != nil || len(messages) == 0 {
		return nil
	}
	fds, err := syscall.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return nil
	}
	return os.NewFile(uintptr(fds[0]), "received")
}

// keeps are the sockets that the daemon gave.
func (s *supervised) keeps() map[string]*os.File {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.kept)
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
	script := `LISTEN_PID=$$ exec "$0" serve --data-dir "$1" --https off --ssh off --admin-password "$2" "${@:3}"`
	s.cmd = exec.Command("bash", append([]string{"-c", script, s.program, s.dir, adminPassword}, s.args...)...)
	names := []string{"http"}
	s.cmd.ExtraFiles = []*os.File{s.socket}
	for name, f := range s.keeps() {
		names, s.cmd.ExtraFiles = append(names, name), append(s.cmd.ExtraFiles, f)
	}
	s.cmd.Env = append(os.Environ(), fmt.Sprint("LISTEN_FDS=", len(names)), "LISTEN_FDNAMES="+strings.Join(names, ":"), "NOTIFY_SOCKET="+s.notify.LocalAddr().String())
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
	select {
	case text := <-s.states:
		return text, nil
	case err := <-s.ended:
		s.ended = nil
		return "", fmt.Errorf("it ended: %w", err)
	case <-time.After(within):
		return "", fmt.Errorf("it said nothing for %v", within)
	}
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
	t.Parallel()
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
		"nothing was changed":                               shellProgram(t, "echo something else"),
		"is not a cupola binary":                            shellProgram(t, "exit 3"),
		"did not start, and the previous binary runs again": shellProgram(t, `[ "$1" = version ] && echo "cupola 9.9 (CF)" && exit; echo no >&2; exit 1`),
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

// TestTCPRoutesOutliveTheDaemon restarts a daemon, and kills it, while an app is
// asked at its port: nobody is refused, since the manager keeps the socket. Once
// no route has the port, it does not.
func TestTCPRoutesOutliveTheDaemon(t *testing.T) {
	binary := needBinary(t)
	port := freePorts(t, 1)[0]
	tcp := []string{"--tcp", fmt.Sprintf("127.0.0.1:%d", port)}
	d := startDaemon(t, binary, tcp...)
	d.pushProbe("probe")
	route := d.tcpRoute("probe", port)
	answers(t, port, "ready")
	d.kill()
	s := supervise(t, d, binary)
	s.args = tcp
	t.Cleanup(func() { s.Stop(context.Background()) })
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, 10*time.Second, func() string {
		if s.keeps()[fmt.Sprint("tcp-", port)] == nil {
			return "the socket is not kept"
		}
		return ""
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var killed atomic.Bool
	var sent atomic.Int64
	failed := make(chan error, 1)
	for range 4 {
		go func() {
			for ctx.Err() == nil {
				err := askPort(port)
				sent.Add(1)
				// Who is connected to a daemon that is killed is cut off, and not refused.
				if err != nil && ctx.Err() == nil && (!killed.Load() || errors.Is(err, syscall.ECONNREFUSED)) {
					select {
					case failed <- err:
					default:
					}
				}
			}
		}()
	}
	for range 2 {
		if err := s.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.asked(&sent)
	}
	killed.Store(true)
	s.cmd.Process.Kill()
	<-s.ended
	s.ended = nil
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.asked(&sent)
	cancel()
	select {
	case err := <-failed:
		t.Errorf("one of %d failed: %v", sent.Load(), err)
	default:
	}
	d.api("DELETE", "/v3/routes/"+route, nil, nil)
	answers(t, port, "refused")
	if left := s.keeps(); len(left) > 0 {
		t.Errorf("%v is still kept", left)
	}
}

// asked waits until some more have been answered.
func (s *supervised) asked(sent *atomic.Int64) {
	s.t.Helper()
	n := sent.Load()
	eventually(s.t, 20*time.Second, func() string {
		if sent.Load() < n+20 {
			return "nobody answers"
		}
		return ""
	})
}

// askPort asks an app at its port.
func askPort(port int) error {
	client := &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Get(fmt.Sprintf("http://127.0.0.1:%d/", port))
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, res.Body)
	return errors.Join(err, res.Body.Close())
}
