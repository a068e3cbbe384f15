package drain

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"cupola/runtime/fault"
)

// queueSize is how many messages wait for a drain at most: as many as the
// syslog agent holds.
const queueSize = 10_000

// queueBytes is how much text waits for a drain at most; cupola's own bound, for
// lines are up to 60 KiB long.
const queueBytes = 16 << 20

// The pauses between tries to connect: twice as long each time.
const (
	firstPause = 50 * time.Millisecond
	maxPause   = 15 * time.Second
)

// reportInterval is how often losses are reported to an app, at most.
const reportInterval = 10 * time.Second

// worker serves one drain.
type worker struct {
	*Drains
	to    Drain
	queue chan Message
	stop  context.CancelFunc

	mu      sync.Mutex
	lost    int
	queued  int // bytes
	failure Failure
}

// Failure is that a drain takes no messages.
type Failure struct {
	AppGUID string
	URL     string // without what may be secret
	Since   time.Time
	Error   string
}

// fails notes that a message could not be sent, or, for nil, that one was.
func (w *worker) fails(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case err == nil:
		w.failure = Failure{}
	case w.failure.Since.IsZero():
		w.failure = Failure{AppGUID: w.to.AppGUID, URL: w.to.shown(), Since: time.Now(), Error: err.Error()}
	default:
		w.failure.Error = err.Error()
	}
}

// put queues a message, or counts it as lost.
func (w *worker) put(m Message) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.queued+len(m.Text) > queueBytes {
		w.lost++
		return
	}
	select {
	case w.queue <- m:
		w.queued += len(m.Text)
	default:
		w.lost++
	}
}

// taken makes room for others.
func (w *worker) taken(m Message) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queued -= len(m.Text)
}

// run sends what is queued until ctx ends.
func (w *worker) run(ctx context.Context) {
	var conn net.Conn
	defer func() {
		if conn != nil {
			_ = conn.Close()
		}
	}()
	for {
		select {
		case m := <-w.queue:
			w.taken(m)
			if conn = w.send(ctx, conn, frame(w.to.Host, m)); conn == nil {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// send writes a frame, if need be on a new connection, which it returns; nil
// when ctx has ended. A frame whose writing failed is sent again.
func (w *worker) send(ctx context.Context, conn net.Conn, frame []byte) net.Conn {
	failed := false
	for pause, reported := firstPause, false; ; pause = min(2*pause, maxPause) {
		var err error
		if conn == nil {
			conn, err = w.connect(ctx)
		}
		if err == nil {
			_ = conn.SetWriteDeadline(time.Now().Add(writeTime))
			if _, err = conn.Write(frame); err == nil {
				if failed {
					w.fails(nil)
				}
				return conn
			}
			_ = conn.Close()
			conn = nil
		}
		w.fails(err)
		failed = true
		if !reported && pause > time.Second { // a blink of the network is not reported
			w.Report(w.to.AppGUID, fmt.Sprintf("Failed to connect to user provided syslog drain with url %s: %v", w.to.shown(), err))
			reported = true
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil
		}
	}
}

// connect connects to the drain. A connection that the other end closes is
// closed here at once, so that no frame is written that no reader gets.
func (w *worker) connect(ctx context.Context) (net.Conn, error) {
	conn, err := w.dial(ctx, w.to)
	if err != nil {
		return nil, err
	}
	fault.Go("drain", func() {
		_, _ = io.Copy(io.Discard, conn)
		_ = conn.Close()
	})
	return conn, nil
}

// tell tells the app of what was lost.
func (w *worker) tell(ctx context.Context) {
	tick := time.NewTicker(reportInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			w.report()
		case <-ctx.Done():
			w.report()
			return
		}
	}
}

func (w *worker) report() {
	w.mu.Lock()
	lost := w.lost
	w.lost = 0
	w.mu.Unlock()
	if lost > 0 {
		w.Report(w.to.AppGUID, fmt.Sprintf("%d messages lost for application %s in user provided syslog drain with url %s", lost, w.to.AppGUID, w.to.shown()))
	}
}
