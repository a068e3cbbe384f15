package proxy

import (
	"container/list"
	"net"
	"sync"
	"time"
)

// handshakeTime bounds a client's handshake.
const handshakeTime = 10 * time.Second

// maxHandshakes is how many clients may be in their handshake. Beyond it the oldest one
// loses its connection, so that silent clients cannot lock out others.
const maxHandshakes = 512

// handshakes are the clients in their handshake, the first to come first.
type handshakes struct {
	most int

	mu   sync.Mutex
	list list.List // of net.Conn
}

// begin counts a connection until end is called. At its deadline, or when it is one
// too many, it is closed.
func (h *handshakes) begin(conn net.Conn) (end func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.list.Len() >= h.most {
		if first, ok := h.list.Remove(h.list.Front()).(net.Conn); ok {
			_ = first.Close() // its goroutine sees to the rest
		}
	}
	e := h.list.PushBack(conn)
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.list.Remove(e) // does nothing when it has gone
	}
}
