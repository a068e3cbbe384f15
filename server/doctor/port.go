package doctor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"syscall"
)

func (m *machine) http(ctx context.Context) Result  { return m.listens(ctx, "--http", m.HTTP) }
func (m *machine) https(ctx context.Context) Result { return m.listens(ctx, "--https", m.HTTPS) }

// listens checks that the daemon can listen, or already listens, at addr.
func (m *machine) listens(ctx context.Context, flag, addr string) Result {
	switch addr {
	case "off":
		return fine("off")
	case "":
		return fine("as the running daemon listens")
	}
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", addr)
	if err == nil {
		l.Close()
		return fine(addr + " is free")
	}
	other := fmt.Sprintf("sudo cupola serve %s %s", flag, otherPort(addr))
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return m.inUse(addr, other)
	case errors.Is(err, syscall.EACCES):
		return failure(addr+" requires root", "run it with sudo")
	}
	return failure(err.Error(), other)
}

// inUse reports which process listens at addr.
func (m *machine) inUse(addr, other string) Result {
	_, text, _ := net.SplitHostPort(addr)
	port, _ := strconv.Atoi(text)
	pid := m.listener(port)
	if pid == 0 {
		return failure(addr+" is in use", other)
	}
	who := fmt.Sprintf("%s (pid %d)", m.read(fmt.Sprintf("proc/%d/comm", pid)), pid)
	if d, ok := m.daemon(m.DataDir); ok && d.PID == pid {
		return fine(addr + ": cupola is running, pid " + strconv.Itoa(pid))
	}
	return failure(addr+" is in use by "+who, other+fmt.Sprintf("   # or: sudo kill %d", pid))
}

func otherPort(addr string) string {
	host, text, _ := net.SplitHostPort(addr)
	port, err := strconv.Atoi(text)
	if err != nil || port > 64000 {
		port = 8080
	}
	return net.JoinHostPort(host, strconv.Itoa(port+1000))
}

// listening returns the inodes of the sockets that listen on port, from
// /proc/net/tcp.
func listening(table string, port int) (inodes []string) {
	const listen = "0A" // TCP_LISTEN
	for line := range strings.Lines(table) {
		f := strings.Fields(line)
		if len(f) < 10 || f[3] != listen {
			continue
		}
		_, text, _ := strings.Cut(f[1], ":")
		if n, err := strconv.ParseUint(text, 16, 16); err == nil && int(n) == port {
			inodes = append(inodes, f[9])
		}
	}
	return inodes
}
