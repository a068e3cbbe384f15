package e2e

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

// Supervised is a daemon that a service manager runs: it holds the socket and
// the daemon takes it, and waits for what the daemon says.
type Supervised struct {
	*Daemon
	program string
	Args    []string // besides those that all have
	socket  *os.File
	notify  *net.UnixConn
	Ended   chan error // of the process
	states  chan string

	mu   sync.Mutex
	kept map[string]*os.File // sockets that the daemon gave, by name
}

// Supervise takes the place of systemd for a daemon that was not started yet.
func Supervise(t *testing.T, d *Daemon, program string) *Supervised {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d.Addr = l.Addr().String()
	s := &Supervised{Daemon: d, program: program, states: make(chan string, 1000), kept: map[string]*os.File{}}
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
		for _, f := range s.Keeps() {
			f.Close()
		}
	})
	go s.listen()
	return s
}

// listen hears what the daemon says, as systemd does.
func (s *Supervised) listen() {
	for {
		var b, oob [256]byte
		n, m, _, _, err := s.notify.ReadMsgUnix(b[:], oob[:])
		if err != nil {
			return // the test has ended
		}
		s.hear(string(b[:n]), fileOf(oob[:m]))
	}
}

// hear keeps, forgets, or hands on. The sender of a barrier waits for the end of
// its file.
func (s *Supervised) hear(text string, f *os.File) {
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

// Keeps are the sockets that the daemon gave.
func (s *Supervised) Keeps() map[string]*os.File {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.kept)
}

// Stop ends the daemon as systemd does.
func (s *Supervised) Stop(context.Context) error {
	if s.Ended == nil {
		return nil // it does not run, or somebody else started it
	}
	if err := s.Cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-s.Ended // in whatever way
	s.Ended = nil
	return nil
}

// Restart returns when the daemon says that it is ready, or has ended.
func (s *Supervised) Restart(ctx context.Context) error {
	if err := s.Stop(ctx); err != nil {
		return err
	}
	script := `LISTEN_PID=$$ exec "$0" serve --data-dir "$1" --https off --ssh off --admin-password "$2" "${@:3}"`
	s.Cmd = exec.Command("bash", append([]string{"-c", script, s.program, s.Dir, AdminPassword}, s.Args...)...)
	names := []string{"http"}
	s.Cmd.ExtraFiles = []*os.File{s.socket}
	for name, f := range s.Keeps() {
		names, s.Cmd.ExtraFiles = append(names, name), append(s.Cmd.ExtraFiles, f)
	}
	s.Cmd.Env = append(os.Environ(), fmt.Sprint("LISTEN_FDS=", len(names)), "LISTEN_FDNAMES="+strings.Join(names, ":"), "NOTIFY_SOCKET="+s.notify.LocalAddr().String())
	s.Cmd.Stdout, s.Cmd.Stderr = io.Discard, s.Log
	if err := s.Cmd.Start(); err != nil {
		return err
	}
	s.Ended = make(chan error, 1)
	go func(cmd *exec.Cmd, ended chan<- error) { ended <- cmd.Wait() }(s.Cmd, s.Ended)
	for {
		said, err := s.said(30 * time.Second)
		if err != nil || said == "READY=1" {
			return err
		}
	}
}

// said is the next that the daemon says.
func (s *Supervised) said(within time.Duration) (string, error) {
	select {
	case text := <-s.states:
		return text, nil
	case err := <-s.Ended:
		s.Ended = nil
		return "", fmt.Errorf("it ended: %w", err)
	case <-time.After(within):
		return "", fmt.Errorf("it said nothing for %v", within)
	}
}

// Requests asks an app until ctx ends, a new connection each time.
func (s *Supervised) Requests(ctx context.Context, app string, sent *atomic.Int64, failed chan<- string) {
	client := &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	for ctx.Err() == nil {
		req, err := http.NewRequestWithContext(context.Background(), "GET", "http://"+s.Addr+"/health", nil)
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
