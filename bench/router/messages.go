package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// The key that a client sends, and what proves to it that the server has read it (RFC 6455);
// haproxy checks it, too.
const (
	websocketKey    = "dGhlIHNhbXBsZSBub25jZQ=="
	websocketAccept = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
)

// messages sends messages of a size on websockets, each after the one before has come
// back. What they are makes no difference to a proxy.
func messages(size int) load {
	return func(ctx context.Context, target *process, connections int, length time.Duration) (result, error) {
		var all sync.WaitGroup
		var done, failed atomic.Int64
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		conns := make([]*socket, connections)
		for i := range conns {
			s, err := dialSocket(ctx, target.addr)
			if err != nil {
				return result{}, err
			}
			defer s.conn.Close()
			conns[i] = s
		}
		before, began := cpuTime(target.pid), time.Now()
		for _, s := range conns {
			all.Go(func() {
				if err := s.exchange(size, began.Add(length), &done); err != nil {
					failed.Add(1)
				}
			})
		}
		all.Wait()
		took := time.Since(began)
		return result{perSecond: float64(done.Load()) / took.Seconds(), cpu: (cpuTime(target.pid) - before) / time.Duration(max(done.Load(), 1)), errors: int(failed.Load())}, nil
	}
}

// socket is a websocket.
type socket struct {
	conn net.Conn
	in   *bufio.Reader
}

func dialSocket(ctx context.Context, addr string) (*socket, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	_, err = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: "+websocketKey+"\r\n\r\n")
	in := bufio.NewReaderSize(conn, 64<<10)
	var res *http.Response
	if err == nil {
		res, err = http.ReadResponse(in, nil) //nolint:bodyclose // it has none
	}
	if err == nil && res.StatusCode != http.StatusSwitchingProtocols {
		err = fmt.Errorf("got %s; want a websocket", res.Status)
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return &socket{conn, in}, nil
}

// exchange sends messages until a time.
func (s *socket) exchange(size int, until time.Time, done *atomic.Int64) error {
	message, back := make([]byte, size), make([]byte, size)
	for time.Now().Before(until) {
		if _, err := s.conn.Write(message); err != nil {
			return err
		}
		if _, err := io.ReadFull(s.in, back); err != nil {
			return err
		}
		done.Add(1)
	}
	return nil
}
