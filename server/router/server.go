package router

import (
	"log/slog"
	"net"
	"net/http"
)

// maxHeaderBytes bounds the head of a request.
const maxHeaderBytes = 64 << 10

// NewServer gives an http.Server with the limits that hold against slow and
// greedy clients: HTTP/1.1, HTTP/2 over TLS and HTTP/2 with prior knowledge
// without it. Bodies may take as long as they like, as long as they make progress:
// uploads and streams do. Serve it on a listener from Guard.
func NewServer(handler http.Handler, log *slog.Logger, t Timeouts) *http.Server {
	t = t.withDefaults()
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	return &http.Server{
		Handler:           progressing(handler, t.Progress),
		ConnContext:       withClient(t.Progress),
		Protocols:         protocols,
		ReadHeaderTimeout: t.RequestHeader,
		IdleTimeout:       t.ClientIdle,
		MaxHeaderBytes:    maxHeaderBytes,
		ConnState:         released,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}

// released lets go of connections that a handler takes over: what comes on
// them is no HTTP any more.
func released(conn net.Conn, state http.ConnState) {
	if state != http.StateHijacked {
		return
	}
	for {
		switch c := conn.(type) {
		case *guard:
			c.raw.Store(true)
			return
		case interface{ NetConn() net.Conn }:
			conn = c.NetConn()
		default:
			return
		}
	}
}
