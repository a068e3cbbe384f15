package router

import (
	"errors"
	"io"
	"net"
	"os"
	"sync/atomic"
)

// guard watches what a client sends on an HTTP/1 connection and refuses
// request heads that one server may understand differently from another:
// Content-Length beside Transfer-Encoding, Content-Length twice, folded
// headers. net/http silently mends these, but who sends them means harm. A
// refused head is made unreadable, so that net/http answers it with 400 and
// closes the connection, in its turn among pipelined requests.
type guard struct {
	net.Conn
	early  []byte // was read from the connection before, and comes first
	scan   scanner
	poison []byte // what the server reads in place of the refused rest
	bad    bool
	raw    atomic.Bool // the connection was taken over: no HTTP any more
	failed error       // of a read
}

// poison ends a head such that net/http cannot parse it, wherever in the head
// it comes.
const poison = "\x00\r\n\r\n"

// Read gives the server what the client sent, as long as that is sound.
func (g *guard) Read(p []byte) (int, error) {
	if g.raw.Load() {
		return g.next(p)
	}
	if g.bad {
		return g.readPoison(p)
	}
	n, err := g.next(p)
	good, ok := g.scan.feed(p[:n])
	if ok {
		return n, err
	}
	g.bad, g.poison = true, []byte(poison)
	if good > 0 {
		return good, nil
	}
	return g.readPoison(p)
}

// next reads what has not been scanned. After an error there is no more to read, even if
// the error passes: net/http has ended the context of the connection for it, so that each
// later request would be cancelled.
func (g *guard) next(p []byte) (n int, err error) {
	if g.failed != nil {
		return 0, g.failed
	}
	if len(g.early) == 0 {
		if n, err = g.Conn.Read(p); !errors.Is(err, os.ErrDeadlineExceeded) {
			g.failed = err
		}
		return n, err
	}
	n = copy(p, g.early)
	if g.early = g.early[n:]; len(g.early) == 0 {
		g.early = nil
	}
	return n, nil
}

func (g *guard) readPoison(p []byte) (int, error) {
	if len(g.poison) == 0 && len(p) > 0 {
		return 0, io.EOF
	}
	n := copy(p, g.poison)
	g.poison = g.poison[n:]
	return n, nil
}
