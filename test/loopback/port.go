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
	var err error
	for range 1000 {
		if len(ports) == n {
			return ports
		}
		port := first + rand.IntN(end-first)
		l, failed := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if failed != nil {
			err = failed
			continue
		}
		defer l.Close() // all at once: they differ
		ports = append(ports, port)
	}
	t.Fatalf("found %d unused ports; want %d: %v", len(ports), n, err)
	return nil
}
