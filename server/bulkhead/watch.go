package bulkhead

import (
	"net"
	"net/http"
	"sync"

	"cupola/runtime/fault"
)

// Watch bounds the connections of a server on which no request is under way:
// those that have not asked yet, TLS handshakes included, and idle ones. It is
// called before the server serves.
func Watch(srv *http.Server, limit int) {
	strangers := NewStrangers(limit)
	var mu sync.Mutex
	idle := map[net.Conn]*Stranger{}
	leave := func(c net.Conn) {
		if one := idle[c]; one != nil {
			strangers.Remove(one)
			delete(idle, c)
		}
	}
	srv.ConnState = func(c net.Conn, state http.ConnState) {
		mu.Lock()
		defer mu.Unlock()
		leave(c)
		if state == http.StateNew || state == http.StateIdle {
			idle[c], _ = strangers.Add(Address(c.RemoteAddr()), func() {
				fault.Go("bulkhead", func() { _ = c.Close() }) // TLS says goodbye, which takes time
			})
		}
	}
	fault.Hooks("bulkhead", srv)
}
