package router

import (
	"log/slog"
	"net/http"
)

// maxHeaderBytes bounds the head of a request.
const maxHeaderBytes = 64 << 10

// NewServer gives an http.Server with the limits that hold against slow and
// greedy clients: HTTP/1.1, HTTP/2 over TLS and HTTP/2 with prior knowledge
// without it. Bodies may take as long as they like: uploads and streams do.
func NewServer(handler http.Handler, log *slog.Logger, t Timeouts) *http.Server {
	t = t.withDefaults()
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	return &http.Server{
		Handler:           handler,
		Protocols:         protocols,
		ReadHeaderTimeout: t.RequestHeader,
		IdleTimeout:       t.ClientIdle,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}
