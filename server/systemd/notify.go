package systemd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"syscall"
	"time"
)

// What a service says of itself.
const (
	Ready    = "READY=1"
	Stopping = "STOPPING=1"
	alive    = "WATCHDOG=1"
)

// Manager is the service manager that started this process. The zero value is
// none.
type Manager struct {
	socket   string        // where it listens; one in the abstract name space begins with @
	watchdog time.Duration // the service is killed when it says nothing for so long; 0: never
}

// FromEnvironment finds the manager, and takes its variables from the
// environment, so that no child takes them for its own.
func FromEnvironment() Manager {
	m := Manager{socket: os.Getenv("NOTIFY_SOCKET")}
	pid := os.Getenv("WATCHDOG_PID")
	if usec, err := strconv.ParseInt(os.Getenv("WATCHDOG_USEC"), 10, 64); err == nil && (pid == "" || pid == strconv.Itoa(os.Getpid())) {
		m.watchdog = time.Duration(usec) * time.Microsecond
	}
	for _, name := range []string{"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"} {
		os.Unsetenv(name)
	}
	return m
}

// Notify says a state to the manager, if there is one.
func (m Manager) Notify(state string) error { return m.send(state, nil) }

// Keep stores a listener in the manager's file descriptor store (FDSTORE=) for
// the next process of this service, which finds it by name among its
// Listeners. It stays when this process closes it or is killed. The manager
// ignores it if the store is full or disabled (FileDescriptorStoreMax=).
func (m Manager) Keep(name string, l *net.TCPListener) error {
	if m.socket == "" {
		return nil
	}
	f, err := l.File()
	if err != nil {
		return fmt.Errorf("give the socket %s to the service manager: %w", name, err)
	}
	defer f.Close()
	return m.send("FDSTORE=1\nFDNAME="+name, syscall.UnixRights(int(f.Fd())))
}

// barrierTime is how long the service manager may take to handle a notification.
const barrierTime = time.Second

// Forget ends Keep. When it returns, the manager has closed the socket or does
// not answer; until then nothing else can listen at the address.
func (m Manager) Forget(name string) error {
	if m.socket == "" {
		return nil
	}
	if err := m.send("FDSTOREREMOVE=1\nFDNAME="+name, nil); err != nil {
		return err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	// The manager closes what comes with this once it has done all before: sd_notify_barrier(3).
	if err := errors.Join(m.send("BARRIER=1", syscall.UnixRights(int(w.Fd()))), w.Close(), r.SetReadDeadline(time.Now().Add(barrierTime))); err != nil {
		return err
	}
	if _, err := r.Read(make([]byte, 1)); err != io.EOF {
		return fmt.Errorf("wait for the service manager: %w", err)
	}
	return nil
}

func (m Manager) send(state string, rights []byte) error {
	if m.socket == "" {
		return nil
	}
	c, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: m.socket, Net: "unixgram"})
	if err != nil {
		return fmt.Errorf("notify the service manager: %w", err)
	}
	defer c.Close()
	raw, err := c.SyscallConn() // WriteMsgUnix takes no connected sockets
	if err != nil {
		return fmt.Errorf("notify the service manager: %w", err)
	}
	var sent error
	err = raw.Write(func(fd uintptr) bool {
		sent = syscall.Sendmsg(int(fd), []byte(state), rights, nil, syscall.MSG_NOSIGNAL)
		return !errors.Is(sent, syscall.EAGAIN)
	})
	if err := errors.Join(err, sent); err != nil {
		return fmt.Errorf("notify the service manager: %w", err)
	}
	return nil
}

// KeepAlive says that the service is alive, twice as often as the manager wants
// to hear it and for as long as check returns nil within that time, until ctx
// ends.
func (m Manager) KeepAlive(ctx context.Context, check func(context.Context) error) error {
	if m.watchdog <= 0 {
		return nil
	}
	t := time.NewTicker(m.watchdog / 2)
	defer t.Stop()
	for {
		if m.checked(ctx, check) {
			if err := m.Notify(alive); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		}
	}
}

func (m Manager) checked(ctx context.Context, check func(context.Context) error) bool {
	ctx, cancel := context.WithTimeout(ctx, m.watchdog/2)
	defer cancel()
	return check(ctx) == nil
}
