package systemd

import (
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
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
func (m Manager) Notify(state string) error {
	if m.socket == "" {
		return nil
	}
	c, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: m.socket, Net: "unixgram"})
	if err != nil {
		return fmt.Errorf("notify the service manager: %w", err)
	}
	defer c.Close()
	if _, err := c.Write([]byte(state)); err != nil {
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
