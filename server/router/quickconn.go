package router

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"unsafe"
)

// quickConn is a TCP connection whose reads and writes do not tell Go's scheduler of
// their system calls. These never wait, as the socket does not block: for a proxy of small
// messages, giving the processor up and taking it back costs as much as the rest of a call.
type quickConn struct {
	*net.TCPConn
	reader, writer, asker, waiter quickCall
	peeked                        [1]byte
}

// newQuickConn gives a quickConn for a TCP connection; others stay as they are.
func newQuickConn(conn net.Conn) net.Conn {
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return conn
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return conn
	}
	c := &quickConn{TCPConn: tcp}
	c.reader.wait, c.reader.call = raw.Read, c.reader.read
	c.writer.wait, c.writer.call = raw.Write, c.writer.write
	c.asker.wait, c.asker.call = raw.Read, c.asker.ask
	c.waiter.wait, c.waiter.call = raw.Read, c.waiter.peek
	return c
}

// NetConn is the connection below.
func (c *quickConn) NetConn() net.Conn { return c.TCPConn }

// Read reads what has come.
func (c *quickConn) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	n, errno, err := c.reader.do(p)
	switch {
	case err != nil:
		return n, err
	case errno != 0:
		return 0, c.failed("read", errno)
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}

// Write writes all of p.
func (c *quickConn) Write(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	n, errno, err := c.writer.do(p)
	if err == nil && errno != 0 {
		err = c.failed("write", errno)
	}
	return n, err
}

// Ask writes p, of which it returns how much was written at once, and waits until
// something is to be read. Nothing may be there to be read before: that would not be
// noticed. It saves a Read that finds nothing.
func (c *quickConn) Ask(p []byte) (int, error) {
	n, errno, err := c.asker.do(p)
	if err == nil && errno != 0 {
		err = c.failed("write", errno)
	}
	return n, err
}

// Wait waits until something is to be read, be it the end, and reads nothing.
func (c *quickConn) Wait() error {
	_, _, err := c.waiter.do(c.peeked[:])
	return err
}

// readNow reads what has come on a quickConn, without waiting and whatever the deadline; 0
// if nothing has. A process that did not run for a while finds the deadline passed, though
// the other side may have kept it.
func readNow(conn net.Conn, p []byte) (n int) {
	c, ok := conn.(*quickConn)
	if !ok || len(p) == 0 {
		return 0
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return 0
	}
	q := quickCall{p: p}
	_ = raw.Control(func(fd uintptr) { q.read(fd) }) // fails if it is closed: then nothing comes
	return q.n
}

// failed is the error of a call as package net has it.
func (c *quickConn) failed(call string, errno syscall.Errno) error {
	return &net.OpError{Op: call, Net: "tcp", Source: c.LocalAddr(), Addr: c.RemoteAddr(), Err: os.NewSyscallError(call, errno)}
}

// quickCall is a system call on a connection, which is kept for the next one.
type quickCall struct {
	mu    sync.Mutex
	wait  func(func(fd uintptr) bool) error // calls until it is true, each time the socket is ready
	call  func(fd uintptr) bool
	p     []byte
	n     int
	errno syscall.Errno
}

// do makes the call until it is done.
func (q *quickCall) do(p []byte) (n int, errno syscall.Errno, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.p, q.n, q.errno = p, 0, 0
	err = q.wait(q.call)
	q.p = nil
	return q.n, q.errno, err
}

// once makes the call once.
func (q *quickCall) once(trap, fd, flags uintptr) (n int, errno syscall.Errno) {
	for {
		p := q.p[q.n:]
		n, _, errno := syscall.RawSyscall6(trap, fd, uintptr(unsafe.Pointer(&p[0])), uintptr(len(p)), flags, 0, 0)
		if errno != syscall.EINTR {
			return int(n), errno
		}
	}
}

func (q *quickCall) read(fd uintptr) bool {
	n, errno := q.once(syscall.SYS_RECVFROM, fd, 0)
	if errno == syscall.EAGAIN {
		return false
	}
	if q.errno = errno; errno == 0 {
		q.n = n
	}
	return true
}

func (q *quickCall) write(fd uintptr) bool {
	for {
		n, errno := q.once(syscall.SYS_SENDTO, fd, syscall.MSG_NOSIGNAL)
		switch {
		case errno == syscall.EAGAIN:
			return false
		case errno != 0:
			q.errno = errno
			return true
		}
		if q.n += n; q.n == len(q.p) {
			return true
		}
	}
}

// ask writes when it is called first, and is done when it is called again.
func (q *quickCall) ask(fd uintptr) bool {
	if q.n > 0 {
		return true
	}
	n, errno := q.once(syscall.SYS_SENDTO, fd, syscall.MSG_NOSIGNAL)
	if errno != 0 && errno != syscall.EAGAIN {
		q.errno = errno
		return true
	}
	if errno == 0 {
		q.n = n
	}
	return q.n < len(q.p)
}

func (q *quickCall) peek(fd uintptr) bool {
	_, errno := q.once(syscall.SYS_RECVFROM, fd, syscall.MSG_PEEK)
	return errno != syscall.EAGAIN
}
