package loopback

import (
	"io"
	"net"
	"testing"
)

// Forward forwards connections to an address of this machine, as NAT or a Service does, until the test ends: each to what to
// returns then. One for which it returns "" is refused.
func Forward(t testing.TB, address string, to func() string) {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go forward(c, to())
		}
	}()
}

func forward(from net.Conn, address string) {
	defer from.Close()
	if address == "" {
		return
	}
	to, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	defer to.Close()
	go func() {
		_, _ = io.Copy(to, from)
		_ = to.(*net.TCPConn).CloseWrite()
	}()
	_, _ = io.Copy(from, to)
}
