package logstream

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"golang.org/x/net/websocket"

	"cupola/runtime/fault"
)

// How often a client is asked whether it is there, and how long it may say nothing
// (loggregator-release: src/trafficcontroller/internal/proxy/keepalive.go).
const (
	pingInterval = 15 * time.Second
	silence      = 45 * time.Second
)

// The codes of a websocket's end (RFC 6455).
const (
	closeNormal = 1000
	closePolicy = 1008
)

const textSilent = "Client did not respond to ping before keep-alive timeout expired."

// serveWebsocket streams what is wanted, as dropsonde's envelopes.
func (g *Gateway) serveWebsocket(w http.ResponseWriter, r *http.Request, reader Reader, c claim, want selection, shard string) {
	if !upgrades(r) {
		w.Header().Set("Sec-Websocket-Version", "13")
		http.Error(w, http.StatusText(http.StatusBadRequest), http.StatusBadRequest)
		return
	}
	s, ctx, end, ok := g.follow(r.Context(), reader, c, want, shard, "")
	if !ok {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	defer end()
	taken, err := takeOver(w)
	if err != nil {
		http.Error(w, http.StatusText(http.StatusBadRequest), http.StatusBadRequest)
		return
	}
	websocket.Server{Handler: func(conn *websocket.Conn) { g.sendFrames(ctx, conn, s) }}.ServeHTTP(taken, r)
}

// upgrades reports whether a request asks for a websocket.
func upgrades(r *http.Request) bool {
	has := func(name, token string) bool {
		for part := range strings.SplitSeq(strings.Join(r.Header.Values(name), ","), ",") {
			if strings.EqualFold(strings.TrimSpace(part), token) {
				return true
			}
		}
		return false
	}
	return r.Method == http.MethodGet && r.ProtoMajor == 1 && has("Connection", "upgrade") && has("Upgrade", "websocket") &&
		r.Header.Get("Sec-Websocket-Version") == "13" && r.Header.Get("Sec-Websocket-Key") != ""
}

// sendFrames writes what is subscribed until ctx ends or the client is gone.
func (g *Gateway) sendFrames(ctx context.Context, conn *websocket.Conn, s *subscription) {
	gone := make(chan error, 1)
	fault.Go("log stream", func() {
		_, err := io.Copy(io.Discard, conn) // answers pings; ends with the connection
		gone <- err
	})
	ping := time.NewTicker(pingInterval)
	defer ping.Stop()
	if send(conn, websocket.PingFrame, nil) != nil {
		return
	}
	for {
		var err error
		select {
		case <-s.signal:
			err = sendBatch(conn, s)
		case <-ping.C:
			err = send(conn, websocket.PingFrame, nil)
		case err := <-gone:
			if errors.Is(err, os.ErrDeadlineExceeded) {
				_ = send(conn, websocket.CloseFrame, closing(closePolicy, textSilent)) // the end, either way
			}
			return
		case <-ctx.Done():
			_ = send(conn, websocket.CloseFrame, closing(closeNormal, "")) // likewise
			return
		}
		if err != nil {
			return
		}
	}
}

func sendBatch(conn *websocket.Conn, s *subscription) error {
	batch := s.take()
	for i := range batch {
		for _, envelope := range dropsonde(&batch[i]) {
			if err := send(conn, websocket.BinaryFrame, envelope); err != nil {
				return err
			}
		}
	}
	return nil
}

// send writes a frame, which the client must take in time.
func send(conn *websocket.Conn, frame byte, data []byte) error {
	if err := conn.SetWriteDeadline(time.Now().Add(writeTime)); err != nil {
		return err
	}
	return websocket.Codec{Marshal: func(any) ([]byte, byte, error) { return data, frame, nil }}.Send(conn, nil)
}

// closing is the content of a close frame.
func closing(code uint16, text string) []byte {
	return append([]byte{byte(code >> 8), byte(code & 0xff)}, text...)
}

// taken is a connection without HTTP.
type taken struct {
	http.ResponseWriter
	conn net.Conn
	io   *bufio.ReadWriter
}

// takeOver takes the connection from the server. Its reads fail when the client
// says nothing for too long.
func takeOver(w http.ResponseWriter) (taken, error) {
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return taken{}, err
	}
	live := &liveConn{Conn: conn}
	early, _ := buffered.Reader.Peek(buffered.Reader.Buffered()) // what is buffered is there
	in := bufio.NewReader(io.MultiReader(strings.NewReader(string(early)), live))
	return taken{w, live, bufio.NewReadWriter(in, buffered.Writer)}, nil
}

// Hijack is what package websocket calls.
func (t taken) Hijack() (net.Conn, *bufio.ReadWriter, error) { return t.conn, t.io, nil }

// liveConn ends the reads of a client that is gone.
type liveConn struct{ net.Conn }

// Read waits for as long as a client that answers pings may say nothing.
func (l *liveConn) Read(p []byte) (int, error) {
	if err := l.SetReadDeadline(time.Now().Add(silence)); err != nil {
		return 0, err
	}
	return l.Conn.Read(p)
}
