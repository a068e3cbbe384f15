package router

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// A flood of requests to one app makes two connections at a time, and what waits
// too long fails like any connection that cannot be made.
func TestFewDialsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var under, most atomic.Int32
		free := make(chan struct{})
		blocked := net.Dialer{ControlContext: func(context.Context, string, string, syscall.RawConn) error {
			most.Store(max(most.Load(), under.Add(1)))
			<-free
			under.Add(-1)
			return syscall.ECONNREFUSED
		}}
		d := &dialer{Timeout: time.Second, dial: blocked.DialContext, gate: &Gate{}, relieve: func() {}}
		dial := d.inTurn().DialContext
		var failed, all sync.WaitGroup
		failed.Add(18)
		for range 20 {
			all.Go(func() {
				if _, err := dial(t.Context(), "tcp", "127.0.0.1:1"); !dialFailed(err) {
					t.Errorf("got %v; want an error of dialing", err)
				}
				select {
				case <-free:
				default:
					failed.Done()
				}
			})
		}
		failed.Wait() // the timeouts of those that wait
		if most.Load() != maxDials || d.gate.backends.Load() != maxDials {
			t.Errorf("%d were dialed at once, %d count; want %d", most.Load(), d.gate.backends.Load(), maxDials)
		}
		close(free)
		all.Wait()
		if n := d.gate.backends.Load(); n != 0 {
			t.Errorf("%d connections count that nobody has", n)
		}
	})
}
