package routing

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cupola/test/e2e"
	"cupola/test/loopback"
)

// fewFiles is a program that runs cupola with 800 open files at most.
func fewFiles(t testing.TB, binary string) string {
	t.Helper()
	script := filepath.Join(t.TempDir(), "cupola")
	if err := os.WriteFile(script, []byte("#!/bin/sh\nulimit -n 800\nexec "+binary+" \"$@\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return script
}

// flood is many clients that send a text, and then a byte now and then.
type flood struct {
	t     testing.TB
	addr  string
	conns sync.WaitGroup
	stop  func()
	ctx   context.Context
}

func startFlood(t testing.TB, addr string) *flood {
	f := &flood{t: t, addr: addr}
	f.ctx, f.stop = context.WithCancel(t.Context())
	t.Cleanup(f.end)
	return f
}

func (f *flood) end() {
	f.stop()
	f.conns.Wait()
}

// pour opens n connections, which are opened again when they are refused.
func (f *flood) pour(n int, text string) {
	for range n {
		f.conns.Go(func() {
			for f.ctx.Err() == nil {
				f.drip(text)
				select {
				case <-time.After(500 * time.Millisecond):
				case <-f.ctx.Done():
				}
			}
		})
	}
}

func (f *flood) drip(text string) {
	// Another address than that of the test's own requests, which are to be spared.
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	c, err := d.DialContext(f.ctx, "tcp", f.addr)
	if err != nil {
		return
	}
	defer c.Close()
	defer context.AfterFunc(f.ctx, func() { c.Close() })()
	_, err = io.WriteString(c, text)
	for err == nil {
		select {
		case <-time.After(2 * time.Second):
		case <-f.ctx.Done():
		}
		_, err = io.WriteString(c, "x")
	}
}

// asks gives the median and the slowest time that an idle user's requests take.
func asks(d *e2e.Daemon, n int) (median, slowest time.Duration) {
	d.T.Helper()
	var took []time.Duration
	for range n {
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 30 * time.Second}
		req, err := http.NewRequestWithContext(d.T.Context(), http.MethodGet, "http://"+d.Addr+"/v3/apps", nil)
		if err != nil {
			d.T.Fatal(err)
		}
		req.Header.Set("Authorization", "bearer "+d.Client().Token)
		began := time.Now()
		res, err := client.Do(req)
		if err != nil {
			d.T.Errorf("the API does not answer: %v", err)
			continue
		}
		res.Body.Close()
		if res.StatusCode != http.StatusOK {
			d.T.Errorf("the API answers %s", res.Status)
		}
		took = append(took, time.Since(began))
	}
	if len(took) == 0 {
		return 0, 0
	}
	slices.Sort(took)
	return took[len(took)/2], took[len(took)-1]
}

// TestFloodsLeaveRoom attacks a daemon that may open 800 files as loudly as one
// client can. The API, other apps, health checks and starts of containers go on.
func TestFloodsLeaveRoom(t *testing.T) {
	t.Parallel()
	at := fmt.Sprintf("127.0.0.1:%d", loopback.FreePorts(t, 1)[0])
	d := e2e.StartDaemon(t, fewFiles(t, e2e.NeedBinary(t)), "--metrics", at)
	for _, app := range []string{"victim", "other"} {
		d.PushProbe(app)
	}
	d.API("POST", "/v3/apps/"+d.App("other")+"/processes/web/actions/scale", e2e.Doc{"instances": 3}, nil)
	before := append(d.Running("other", "web", 3), d.Running("victim", "web", 1)...)
	median, slowest := asks(d, 20)
	for _, attack := range []struct {
		name, text string
		n          int
	}{
		{"dribbling bodies", "POST /read HTTP/1.1\r\nHost: victim.localhost\r\nContent-Length: 1000000\r\n\r\nx", 1200},
		{"slow headers", "GET / HTTP/1.1\r\nHost: victim.localhost\r\nX-Slow: ", 600},
		{"idle connections", "GET / HTTP/1.1\r\nHost: victim.localhost\r\n\r\n", 600},
		{"logins that dribble", "POST /oauth/token HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 10000\r\n\r\nx", 600},
	} {
		t.Run(attack.name, func(t *testing.T) {
			d := d.On(t)
			f := startFlood(t, d.Addr)
			f.pour(attack.n, attack.text)
			<-time.After(3 * time.Second) // of connecting
			during, worst := asks(d, 20)
			t.Logf("the API's median was %s and is %s (%.1f times), the slowest %s and %s", median, during, float64(during)/float64(median), slowest, worst)
			d.Answers("other", "ready")
		})
	}
	t.Run("starts", func(t *testing.T) {
		d := d.On(t)
		f := startFlood(t, d.Addr)
		f.pour(1200, "POST /read HTTP/1.1\r\nHost: victim.localhost\r\nContent-Length: 1000000\r\n\r\nx")
		d.PushProbe("newcomer")
		d.Running("newcomer", "web", 1)
		<-time.After(15 * time.Second) // of health checks
	})
	after := append(d.Running("other", "web", 3), d.Running("victim", "web", 1)...)
	for i := range before {
		if before[i].InstanceGUID != after[i].InstanceGUID {
			t.Errorf("an instance was killed: %+v, now %+v", before[i], after[i])
		}
	}
	d.Answers("victim", "ready")
	res, err := http.Get("http://" + at + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	for _, reason := range []string{"app", "no_request", "idle", "user"} {
		name := fmt.Sprintf(`cupola_listener_refused_total{environment="localhost",reason=%q} `, reason)
		if _, n, found := strings.Cut(string(text), name); err != nil || !found || strings.HasPrefix(n, "0\n") {
			t.Errorf("the metrics do not say that clients were refused for %s: %v", reason, err)
		}
	}
	if strings.Contains(d.Log.String(), "too many open files") {
		t.Error("the daemon ran out of files")
	}
}
