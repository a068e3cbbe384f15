package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// patience is how long a request may take: more than it does on a busy machine.
const patience = 2 * time.Minute

// Load asks until ctx ends, one request after the other, each on a new
// connection.
func Load(ctx context.Context, url string, sent, failed *atomic.Int64) {
	client := &http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		res, err := client.Get(url)
		if ctx.Err() != nil {
			return
		}
		sent.Add(1)
		if err != nil || res.StatusCode != 200 {
			failed.Add(1)
			continue
		}
		res.Body.Close()
	}
}

// Traffic is a steady load on an app through the daemon's router: requests
// begin at their times however long others take.
type Traffic struct {
	host, addr string
	fresh      *http.Client // a connection for each request
	kept       *http.Client // connections are kept

	mu      sync.Mutex
	sent    int
	status  map[int]int
	failed  []Failure
	bodies  map[string]int
	longest time.Duration
	stop    func()
	done    sync.WaitGroup
}

// Failure is a request that got no answer, or none of the app's.
type Failure struct {
	Began, Ended time.Time
	What         string
}

// maxUnderWay bounds the requests under way: those beyond it are not sent.
const maxUnderWay = 100

// Send begins to send so many requests a second.
func (d *Daemon) Send(host string, perSecond int) *Traffic {
	ctx, cancel := context.WithCancel(context.Background())
	tr := &Traffic{host: host, addr: d.Addr, status: map[int]int{}, bodies: map[string]int{}, stop: cancel,
		fresh: &http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}},
		kept:  &http.Client{Timeout: patience, Transport: &http.Transport{MaxIdleConnsPerHost: maxUnderWay}}}
	tr.done.Go(func() { tr.run(ctx, time.Second/time.Duration(perSecond)) })
	return tr
}

func (tr *Traffic) run(ctx context.Context, every time.Duration) {
	slots := make(chan struct{}, maxUnderWay)
	tick := time.NewTicker(every)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		client := tr.fresh
		if n%2 == 0 {
			client = tr.kept
		}
		slots <- struct{}{}
		tr.done.Go(func() {
			defer func() { <-slots }()
			tr.ask(client)
		})
	}
}

func (tr *Traffic) ask(client *http.Client) {
	began := time.Now()
	status, body, err := tr.get(client)
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.sent++
	tr.status[status]++
	tr.longest = max(tr.longest, time.Since(began))
	if err != nil || status != http.StatusOK {
		tr.failed = append(tr.failed, Failure{began, time.Now(), fmt.Sprint(status, " ", body, " ", err)})
		return
	}
	tr.bodies[body]++
}

func (tr *Traffic) get(client *http.Client) (int, string, error) {
	req, err := http.NewRequest("GET", "http://"+tr.addr+"/health", nil)
	if err != nil {
		return 0, "", err
	}
	req.Host = tr.host
	res, err := client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return res.StatusCode, string(body), err
}

// End stops sending, waits for what is under way, and gives the failures of
// requests that met none of the gaps.
func (tr *Traffic) End(t *testing.T, gaps ...Gap) []Failure {
	t.Helper()
	tr.stop()
	tr.done.Wait()
	tr.mu.Lock()
	defer tr.mu.Unlock()
	all := len(tr.failed)
	rest := slices.DeleteFunc(slices.Clone(tr.failed), func(f Failure) bool {
		return slices.ContainsFunc(gaps, func(g Gap) bool { return g.met(f) })
	})
	t.Logf("%d requests, by status %v, the longest took %v; %d failed, %d of them with the daemon that was killed", tr.sent, tr.status, tr.longest, all, all-len(rest))
	return rest
}

// Gap is a time without a daemon.
type Gap struct{ From, To time.Time }

// met reports whether a request met the gap: it was under way when the daemon was
// killed, or began before the next one was there.
func (g Gap) met(f Failure) bool { return f.Ended.After(g.From) && f.Began.Before(g.To) }
