package sshd

import (
	"io"
	"net"
	"strconv"
	"time"

	"golang.org/x/crypto/ssh"
)

// dialTimeout bounds how long a forwarded connection may take to begin.
const dialTimeout = 10 * time.Second

// forward is a channel of type direct-tcpip: a connection that the container
// makes for the client (`cf ssh -L`), with the rights that the app's network
// has.
func forward(c ssh.NewChannel) {
	var to struct {
		Host       string
		Port       uint32
		OriginHost string
		OriginPort uint32
	}
	if ssh.Unmarshal(c.ExtraData(), &to) != nil {
		_ = c.Reject(ssh.ConnectionFailed, "the request cannot be read")
		return
	}
	conn, err := net.DialTimeout("tcp", net.JoinHostPort(to.Host, strconv.FormatUint(uint64(to.Port), 10)), dialTimeout)
	if err != nil {
		_ = c.Reject(ssh.ConnectionFailed, err.Error())
		return
	}
	channel, requests, err := c.Accept()
	if err != nil {
		_ = conn.Close()
		return
	}
	go ssh.DiscardRequests(requests)
	join(channel, conn.(*net.TCPConn))
}

// halfCloser can tell the other side that no more is coming.
type halfCloser interface {
	io.ReadWriteCloser
	CloseWrite() error
}

// join copies both ways until both have ended.
func join(a, b halfCloser) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(a, b)
		_ = a.CloseWrite()
	}()
	_, _ = io.Copy(b, a)
	_ = b.CloseWrite()
	<-done
	_, _ = a.Close(), b.Close()
}
