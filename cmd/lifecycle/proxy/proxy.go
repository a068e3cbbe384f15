// Package proxy terminates TLS for the ports of a container: what Envoy is to
// Diego. A client connects to a TLS port, whose socket the container's init holds;
// the proxy shows the instance's certificate, and forwards what the client says to
// the app's port.
//
// The init starts it with the first connection, and again when a client comes
// after it has ended. It ends itself when it has had no connections for a while, so
// that an instance whose TLS ports are unused pays nothing for them. It runs as the
// app's user in the app's container: its memory is the container's.
package proxy

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"cupola/runtime/contract"
)

// idleTime is how long the proxy stays without connections.
const idleTime = 5 * time.Minute

// Main serves the sockets that it inherited until it is idle, and returns the exit
// code.
func Main([]string) int {
	// When the container has too little memory the kernel ends this, not the app.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0)
	debug.SetGCPercent(50)
	listeners, err := inherited()
	if err == nil {
		p := newProxy(&settings{file: filepath.Join(contract.ProxyDir, contract.ProxyConfigName)}, connections())
		err = p.serve(listeners, idleTime)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "tls proxy:", err)
		return 1
	}
	return 0
}

// inherited are the sockets from contract.ProxySockets on that listen.
func inherited() (all []*net.TCPListener, err error) {
	for fd := contract.ProxySockets; ; fd++ {
		if listens, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ACCEPTCONN); err != nil || listens == 0 {
			break
		}
		f := os.NewFile(uintptr(fd), "tls port "+strconv.Itoa(fd))
		l, err := net.FileListener(f)
		if err != nil {
			return nil, fmt.Errorf("inherited socket %d: %w", fd, err)
		}
		if err := f.Close(); err != nil { // l has its own
			return nil, err
		}
		tcp, ok := l.(*net.TCPListener)
		if !ok {
			return nil, fmt.Errorf("inherited socket %d is not of TCP", fd)
		}
		all = append(all, tcp)
	}
	if len(all) == 0 {
		return nil, errors.New("no listening socket was inherited")
	}
	return all, nil
}

// connections is how many clients there may be: each takes two files.
func connections() int {
	const others = 64
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil || limit.Cur < 2*others {
		return others / 2
	}
	return int(min(limit.Cur-others, 1<<20) / 2)
}
