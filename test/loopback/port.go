// Package loopback gives tests listeners and unused ports at 127.0.0.1, and forwards connections.
package loopback

import (
	"fmt"
	"math/rand/v2"
	"net"
	"testing"
)

// The kernel chooses ports from 32768 on for connections and for listeners at
// port 0 (net.ipv4.ip_local_port_range): it could give away one of those
// between the search and its use.
const first, end = 10000, 32768

// FreePorts returns unused TCP ports of 127.0.0.1.
func FreePorts(t testing.TB, n int) (ports []int) {
	t.Helper()
	for range n {
		l := ListenFixed(t)
		defer l.Close() // all at once: they differ
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports
}

// ListenFixed listens on an unused port that the kernel gives to nobody, so that a later listener can have it, too.
// The caller closes it.
func ListenFixed(t testing.TB) net.Listener {
	t.Helper()
	var err error
	for range 1000 {
		l, failed := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", first+rand.IntN(end-first)))
		if failed == nil {
			return l
		}
		err = failed
	}
	t.Fatalf("found no unused port: %v", err)
	return nil
}
