package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
)

// serveApp is a backend that takes bodies, and sends back what comes on websockets.
func serveApp() error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	announce(l)
	return http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { //nolint:gosec // its only client is the benchmark
		if r.Header.Get("Upgrade") != "" {
			echo(w)
			return
		}
		_, _ = io.Copy(io.Discard, r.Body) // what does not come is counted by the client
		fmt.Fprintln(w, "ok")
	}))
}

// echo takes a connection over, and sends back what comes.
func echo(w http.ResponseWriter) {
	conn, in, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: "+websocketAccept+"\r\n\r\n"); err != nil {
		return
	}
	for p := make([]byte, 64<<10); ; {
		n, err := in.Read(p)
		if err != nil {
			return
		}
		if _, err := conn.Write(p[:n]); err != nil {
			return
		}
	}
}
