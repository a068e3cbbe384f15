package systemd

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// manager listens as a service manager does.
func manager(t *testing.T) (*net.UnixConn, string) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "notify")
	c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c, name
}

func heard(t *testing.T, c *net.UnixConn) string {
	t.Helper()
	if err := c.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	var b [256]byte
	n, err := c.Read(b[:])
	if err != nil {
		t.Fatal(err)
	}
	return string(b[:n])
}

func TestNotify(t *testing.T) {
	c, name := manager(t)
	t.Setenv("NOTIFY_SOCKET", name)
	t.Setenv("WATCHDOG_USEC", "40000")
	t.Setenv("WATCHDOG_PID", strconv.Itoa(os.Getpid()))
	m := FromEnvironment()
	if err := m.Notify(Ready); err != nil {
		t.Fatal(err)
	}
	if got := heard(t, c); got != "READY=1" {
		t.Errorf("got %q", got)
	}
	if v, ok := os.LookupEnv("NOTIFY_SOCKET"); ok {
		t.Errorf("children see %q", v)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- m.KeepAlive(ctx, func(context.Context) error { return nil }) }()
	for range 3 {
		if got := heard(t, c); got != "WATCHDOG=1" {
			t.Errorf("got %q", got)
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// One that hangs or fails is not said to be alive.
func TestKeepAliveChecks(t *testing.T) {
	c, name := manager(t)
	m := Manager{socket: name, watchdog: 20 * time.Millisecond}
	ctx, cancel := context.WithCancel(t.Context())
	calls := 0
	done := make(chan error, 1)
	go func() {
		done <- m.KeepAlive(ctx, func(ctx context.Context) error {
			if calls++; calls > 4 {
				cancel()
			}
			if calls%2 == 0 {
				return errors.New("it fails")
			}
			<-ctx.Done()
			return ctx.Err()
		})
	}()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if err := c.SetReadDeadline(time.Now()); err != nil {
		t.Fatal(err)
	}
	if n, err := c.Read(make([]byte, 64)); err == nil {
		t.Errorf("got %d bytes; want silence", n)
	}
}

func TestNoManager(t *testing.T) {
	for _, name := range []string{"NOTIFY_SOCKET", "WATCHDOG_USEC", "LISTEN_FDS", "LISTEN_PID"} {
		t.Setenv(name, "")
	}
	m := FromEnvironment()
	if err := errors.Join(m.Notify(Ready), m.KeepAlive(t.Context(), nil)); err != nil {
		t.Error(err)
	}
	if all, err := Listeners(); err != nil || len(all) > 0 {
		t.Errorf("got %v, %v", all, err)
	}
	// What was for another process is not for this one.
	t.Setenv("LISTEN_PID", "1")
	t.Setenv("LISTEN_FDS", "1")
	if all, err := Listeners(); err != nil || len(all) > 0 {
		t.Errorf("got %v, %v", all, err)
	}
	for _, bad := range [][2]string{{"many", "http"}, {"-1", "http"}, {"2", "http"}, {"65", "http"}} {
		t.Setenv("LISTEN_PID", strconv.Itoa(os.Getpid()))
		t.Setenv("LISTEN_FDS", bad[0])
		t.Setenv("LISTEN_FDNAMES", bad[1])
		if _, err := Listeners(); err == nil {
			t.Errorf("LISTEN_FDS=%s LISTEN_FDNAMES=%s was taken", bad[0], bad[1])
		}
	}
}

// TestKeptSockets makes a manager keep a listener that is closed here, and then
// forget it.
func TestKeptSockets(t *testing.T) {
	c, name := manager(t)
	m := Manager{socket: name}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Keep("tcp-1024", l.(*net.TCPListener)); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	text, kept := received(t, c)
	if text != "FDSTORE=1\nFDNAME=tcp-1024" || kept == nil {
		t.Fatalf("got %q and %v", text, kept)
	}
	again, err := net.FileListener(kept)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if again.Addr().String() != l.Addr().String() {
		t.Errorf("got %s; want %s", again.Addr(), l.Addr())
	}
	forgot := make(chan error, 1)
	go func() { forgot <- m.Forget("tcp-1024") }()
	if text, _ := received(t, c); text != "FDSTOREREMOVE=1\nFDNAME=tcp-1024" {
		t.Errorf("got %q", text)
	}
	text, barrier := received(t, c)
	select {
	case err := <-forgot:
		t.Errorf("it did not wait: %v", err)
	default:
	}
	if text != "BARRIER=1" || barrier == nil {
		t.Fatalf("got %q and %v", text, barrier)
	}
	barrier.Close()
	if err := <-forgot; err != nil {
		t.Error(err)
	}
	none := Manager{}
	if err := errors.Join(none.Keep("x", l.(*net.TCPListener)), none.Forget("x")); err != nil {
		t.Errorf("without a manager: %v", err)
	}
}

// received is a message and the file that came with it; nil for none.
func received(t *testing.T, c *net.UnixConn) (string, *os.File) {
	t.Helper()
	if err := c.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	var b, oob [256]byte
	n, m, _, _, err := c.ReadMsgUnix(b[:], oob[:])
	if err != nil {
		t.Fatal(err)
	}
	messages, err := syscall.ParseSocketControlMessage(oob[:m])
	if err != nil || len(messages) == 0 {
		return string(b[:n]), nil
	}
	fds, err := syscall.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		t.Fatalf("got %v, %v", fds, err)
	}
	return string(b[:n]), os.NewFile(uintptr(fds[0]), "received")
}
