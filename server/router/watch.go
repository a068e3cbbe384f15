package router

import (
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"cupola/runtime/fault"
)

// watch waits for a client to go, while the endpoint takes its time, or wakes.
type watch struct {
	tcp   *net.TCPConn
	conn  *directConn
	ended chan struct{}
	gone  atomic.Bool // final after ended; set before left is called
}

// watchClient begins to watch, and calls left when the client goes; nil where that cannot
// be.
func watchClient(c *directConn, left func()) *watch {
	raw, err := c.tcp.SyscallConn()
	if err != nil {
		return nil
	}
	c.setDeadline(time.Time{})
	w := &watch{tcp: c.tcp, conn: c, ended: make(chan struct{})}
	fault.Go("router", func() {
		defer close(w.ended)
		err := raw.Read(func(fd uintptr) bool {
			gone := hasGone(int(fd))
			w.gone.Store(gone)
			return gone
		})
		if err == nil {
			left()
		}
	})
	return w
}

// hasGone reports whether a client has closed its connection, at least for sending.
func hasGone(fd int) bool {
	fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
	n, err := unix.Poll(fds, 0)
	return err == nil && n > 0
}

// stop stops watching, and reports whether the client has gone.
func (w *watch) stop() bool {
	_ = w.tcp.SetReadDeadline(time.Now()) // fails if it is closed: then it has ended
	<-w.ended
	w.conn.setDeadline(time.Time{}) // the next request sets its own
	return w.gone.Load()
}

// progress lets a client that takes little at a time take as long as it likes, when
// the kernel copies what it gets.
type progress struct {
	tcp   *net.TCPConn
	limit time.Duration

	mu    sync.Mutex
	timer *time.Timer
	acked uint64
	over  bool
}

// looks is how often progress is looked for within its limit: a process that is late for one has
// the time of the others.
const looks = 8

// watchProgress sets the deadline of writes, and moves it as long as the client takes
// something.
func watchProgress(tcp *net.TCPConn, limit time.Duration) *progress {
	p := &progress{tcp: tcp, limit: limit}
	p.acked = ackedBy(tcp)
	_ = tcp.SetWriteDeadline(time.Now().Add(limit)) // fails if it is closed, as writes do then
	p.timer = time.AfterFunc(limit/looks, fault.Func("router", p.look))
	return p
}

func (p *progress) look() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return
	}
	if n := ackedBy(p.tcp); n != p.acked {
		p.acked = n
		_ = p.tcp.SetWriteDeadline(time.Now().Add(p.limit)) // likewise
	}
	p.timer.Reset(p.limit / looks)
}

func (p *progress) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
	p.timer.Stop()
}

// ackedBy is how many bytes the other side has taken; 0 if that is unknown.
func ackedBy(tcp *net.TCPConn) (n uint64) {
	raw, err := tcp.SyscallConn()
	if err != nil {
		return 0
	}
	_ = raw.Control(func(fd uintptr) {
		if info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
			n = info.Bytes_acked
		}
	})
	return n
}
