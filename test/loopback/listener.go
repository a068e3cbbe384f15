package loopback

import (
	"net"
	"testing"
)

// Listen listens at a port that the kernel chooses, until the test ends.
func Listen(t testing.TB) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// Serve listens like Listen, and calls serve for each connection, concurrently with the
// others. serve closes it.
func Serve(t testing.TB, serve func(net.Conn)) *net.TCPAddr {
	t.Helper()
	l := Listen(t)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go serve(conn)
		}
	}()
	return l.Addr().(*net.TCPAddr)
}
