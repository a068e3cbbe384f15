package router

import (
	"bufio"
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"cupola/runtime/fault"
)

// links are the connections to one endpoint over which requests are forwarded
// directly.
type links struct {
	turns *turns
	life  time.Duration // of an idle one

	mu       sync.Mutex
	idle     []*link // the one that was used last is the last
	sweeping bool
}

func newLinks(t *turns, life time.Duration) *links { return &links{turns: t, life: life} }

// sweepTime is how often idle connections are looked through for old ones, and for
// those that the endpoint has closed.
const sweepTime = 5 * time.Second

// get gives a connection: an idle one, or a new one.
func (ls *links) get(address string, now time.Time) (*link, error) {
	if l := ls.take(now); l != nil {
		return l, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), ls.turns.Timeout)
	defer cancel()
	defer ls.turns.wait(ctx)()
	if l := ls.take(now); l != nil { // it became idle meanwhile
		return l, nil
	}
	conn, err := ls.turns.dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return newLink(conn)
}

// take gives an idle connection on which a request can be sent; nil for none.
func (ls *links) take(now time.Time) *link {
	for {
		l := ls.pop()
		if l == nil || l.usable() && now.Sub(l.used) < ls.life {
			return l
		}
		l.close()
	}
}

func (ls *links) pop() *link {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	n := len(ls.idle)
	if n == 0 {
		return nil
	}
	l := ls.idle[n-1]
	ls.idle[n-1], ls.idle = nil, ls.idle[:n-1]
	return l
}

// put keeps a connection whose answer was read.
func (ls *links) put(l *link, now time.Time) {
	l.end()
	l.used, l.reused = now, true
	if !ls.push(l) {
		l.close()
	}
}

func (ls *links) push(l *link) bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if len(ls.idle) >= maxIdle {
		return false
	}
	ls.idle = append(ls.idle, l)
	if !ls.sweeping {
		ls.sweeping = true
		time.AfterFunc(sweepTime, fault.Func("router", ls.sweep))
	}
	return true
}

// sweep closes idle connections that are too old or broken, until there are none.
func (ls *links) sweep() {
	for _, l := range ls.outdated(time.Now()) {
		l.close()
	}
}

func (ls *links) outdated(now time.Time) (found []*link) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	kept := ls.idle[:0]
	for _, l := range ls.idle {
		if now.Sub(l.used) < ls.life && l.usable() {
			kept = append(kept, l)
		} else {
			found = append(found, l)
		}
	}
	clear(ls.idle[len(kept):])
	ls.idle = kept
	if ls.sweeping = len(kept) > 0; ls.sweeping {
		time.AfterFunc(sweepTime, fault.Func("router", ls.sweep))
	}
	return found
}

// closeIdle closes all idle connections.
func (ls *links) closeIdle() {
	for {
		l := ls.pop()
		if l == nil {
			return
		}
		l.close()
	}
}

// link is a connection to an endpoint. One request has it at a time.
type link struct {
	conn   net.Conn
	tcp    *net.TCPConn
	quick  *quickConn    // tcp, too
	fd     int           // of tcp; as long as it is open
	in     *bufio.Reader // from when an answer comes to its end
	used   time.Time     // when its last answer was read
	reused bool          // it had a request before
	came   bool          // something of this request's answer has come

	deadline time.Time // of reads
	patient  bool      // reads end with the deadline; else the first one calls slow and goes on
	slow     func()
}

// linkReaders are for answers. An idle connection needs none.
var linkReaders = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, bufferBytes) }}

func newLink(conn net.Conn) (*link, error) {
	tcp := tcpOf(conn)
	if tcp == nil || quickOf(conn) == nil {
		conn.Close()
		return nil, errors.New("the connection to the endpoint is not TCP")
	}
	l := &link{conn: conn, tcp: tcp, quick: quickOf(conn)}
	raw, err := tcp.SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) { l.fd = int(fd) })
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return l, nil
}

// tcpOf finds the TCP connection below a connection; nil for none.
func tcpOf(conn net.Conn) *net.TCPConn {
	switch c := conn.(type) {
	case *net.TCPConn:
		return c
	case *backendConn:
		return tcpOf(c.Conn)
	case *client:
		return tcpOf(c.Conn)
	case interface{ NetConn() net.Conn }:
		return tcpOf(c.NetConn())
	}
	return nil
}

// quickOf finds the quickConn of a connection to an endpoint; nil for none.
func quickOf(conn net.Conn) *quickConn {
	if c, ok := conn.(*backendConn); ok {
		conn = c.Conn
	}
	q, _ := conn.(*quickConn)
	return q
}

// ask sends a request, and waits until something has come: there may be very many
// requests that wait, and none needs a buffer. Reads say what is wrong with the answer.
func (l *link) ask(p []byte) error {
	n, err := l.quick.Ask(p)
	slow := errors.Is(err, os.ErrDeadlineExceeded)
	if slow {
		l.hurry()
		err = nil
	}
	if err == nil && n < len(p) {
		_, err = l.quick.Write(p[n:])
	}
	if slow && err == nil {
		_ = l.quick.Wait()
	}
	l.in, _ = linkReaders.Get().(*bufio.Reader)
	l.in.Reset(l)
	return err
}

// usable reports whether nothing has come on an idle connection, not even its end.
// (What comes unasked would be taken for the next answer.)
func (l *link) usable() bool {
	var b [1]byte
	_, _, errno := syscall.RawSyscall6(syscall.SYS_RECVFROM, uintptr(l.fd), uintptr(unsafe.Pointer(&b[0])), 1, syscall.MSG_PEEK|syscall.MSG_DONTWAIT, 0, 0)
	return errno == syscall.EAGAIN
}

// patience is how long an endpoint may take, at least, until the client is watched.
// Most answer sooner.
const patience = 50 * time.Millisecond

// begin prepares for a request. slow is called once if the endpoint takes its time;
// it sets the deadline of reads.
func (l *link) begin(now time.Time, slow func()) {
	l.came, l.patient, l.slow = false, false, slow
	if left := l.deadline.Sub(now); left < patience || left > 2*patience { // else that of a request just before is as good
		l.setDeadline(now.Add(2 * patience))
	}
}

// setDeadline sets the deadline of reads; zero for none.
func (l *link) setDeadline(t time.Time) {
	l.deadline = t
	_ = l.tcp.SetReadDeadline(t) // fails if the connection is closed, as reads do then
}

// end ends a request, of whose answer nothing is left.
func (l *link) end() {
	if l.in != nil {
		l.in.Reset(nil)
		linkReaders.Put(l.in)
		l.in = nil
	}
}

// Read reads what the endpoint sends.
func (l *link) Read(p []byte) (int, error) {
	for {
		n, err := l.conn.Read(p)
		late := errors.Is(err, os.ErrDeadlineExceeded)
		if late && l.expired() {
			if n = readNow(l.quick, p); n > 0 {
				err = nil
			}
		}
		l.came = l.came || n > 0
		if n > 0 || l.patient || !late {
			return n, err
		}
		l.hurry()
	}
}

// expired reports whether the deadline has passed, and not been moved since because the client
// has gone.
func (l *link) expired() bool { return !l.deadline.IsZero() && !time.Now().Before(l.deadline) }

// hurry calls slow, once.
func (l *link) hurry() {
	if !l.patient {
		l.patient = true
		l.slow()
	}
}

func (l *link) close() {
	l.end()
	l.conn.Close()
}
