package restart

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"cupola/test/e2e"
	"cupola/test/loopback"
)

// TestTCPRoutesOutliveTheDaemon restarts a daemon, and kills it, while an app is
// asked at its port: no request is refused, since the manager keeps the socket. Once
// no route has the port, it does not.
func TestTCPRoutesOutliveTheDaemon(t *testing.T) {
	binary := e2e.NeedBinary(t)
	port := loopback.FreePorts(t, 1)[0]
	tcp := []string{"--tcp", fmt.Sprintf("127.0.0.1:%d", port)}
	d := e2e.StartDaemon(t, binary, tcp...)
	d.PushProbe("probe")
	route := d.TCPRoute("probe", port)
	e2e.Answers(t, port, "ready")
	d.Kill()
	s := e2e.Supervise(t, d, binary)
	s.Args = tcp
	t.Cleanup(func() { s.Stop(context.Background()) })
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	e2e.Eventually(t, time.Minute, func() string {
		if s.Keeps()[fmt.Sprint("tcp-", port)] == nil {
			return "the socket is not kept"
		}
		return ""
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var killed atomic.Bool
	var sent atomic.Int64
	failed := make(chan error, 1)
	for range 4 {
		go func() {
			for ctx.Err() == nil {
				err := askPort(port)
				sent.Add(1)
				// Who is connected to a daemon that is killed is cut off, and not refused.
				if err != nil && ctx.Err() == nil && (!killed.Load() || errors.Is(err, syscall.ECONNREFUSED)) {
					select {
					case failed <- err:
					default:
					}
				}
			}
		}()
	}
	for range 2 {
		if err := s.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		asked(s, &sent)
	}
	killed.Store(true)
	s.Cmd.Process.Kill()
	<-s.Ended
	s.Ended = nil
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	asked(s, &sent)
	cancel()
	select {
	case err := <-failed:
		t.Errorf("one of %d failed: %v", sent.Load(), err)
	default:
	}
	d.API("DELETE", "/v3/routes/"+route, nil, nil)
	e2e.Answers(t, port, "refused")
	if left := s.Keeps(); len(left) > 0 {
		t.Errorf("%v is still kept", left)
	}
}

// asked waits until some more have been answered.
func asked(s *e2e.Supervised, sent *atomic.Int64) {
	s.T.Helper()
	n := sent.Load()
	e2e.Eventually(s.T, time.Minute, func() string {
		if sent.Load() < n+20 {
			return "there is no answer"
		}
		return ""
	})
}

// askPort asks an app at its port.
func askPort(port int) error {
	client := &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Get(fmt.Sprintf("http://127.0.0.1:%d/", port))
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, res.Body)
	return errors.Join(err, res.Body.Close())
}
