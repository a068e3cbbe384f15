package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"
)

// traffic is a steady load on an app through the daemon's router: requests
// begin at their times however long others take.
type traffic struct {
	host, addr string
	fresh      *http.Client // a connection for each request
	kept       *http.Client // connections are kept

	mu      sync.Mutex
	sent    int
	status  map[int]int
	failed  []failure
	bodies  map[string]int
	longest time.Duration
	stop    func()
	done    sync.WaitGroup
}

// failure is a request that got no answer, or none of the app's.
type failure struct {
	began, ended time.Time
	what         string
}

// maxUnderWay bounds the requests under way: those beyond it are not sent.
const maxUnderWay = 100

// send begins to send so many requests a second.
func (d *daemon) send(host string, perSecond int) *traffic {
	ctx, cancel := context.WithCancel(context.Background())
	tr := &traffic{host: host, addr: d.addr, status: map[int]int{}, bodies: map[string]int{}, stop: cancel,
		fresh: &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}},
		kept:  &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: maxUnderWay}}}
	tr.done.Go(func() { tr.run(ctx, time.Second/time.Duration(perSecond)) })
	return tr
}

func (tr *traffic) run(ctx context.Context, every time.Duration) {
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

func (tr *traffic) ask(client *http.Client) {
	began := time.Now()
	status, body, err := tr.get(client)
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.sent++
	tr.status[status]++
	tr.longest = max(tr.longest, time.Since(began))
	if err != nil || status != http.StatusOK {
		tr.failed = append(tr.failed, failure{began, time.Now(), fmt.Sprint(status, " ", body, " ", err)})
		return
	}
	tr.bodies[body]++
}

func (tr *traffic) get(client *http.Client) (int, string, error) {
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

// end stops sending, waits for what is under way, and gives the failures of
// requests that met none of the gaps.
func (tr *traffic) end(t *testing.T, gaps ...gap) []failure {
	t.Helper()
	tr.stop()
	tr.done.Wait()
	tr.mu.Lock()
	defer tr.mu.Unlock()
	all := len(tr.failed)
	rest := slices.DeleteFunc(slices.Clone(tr.failed), func(f failure) bool {
		return slices.ContainsFunc(gaps, func(g gap) bool { return g.met(f) })
	})
	t.Logf("%d requests, by status %v, the longest took %v; %d failed, %d of them with the daemon that was killed", tr.sent, tr.status, tr.longest, all, all-len(rest))
	return rest
}

// gap is a time without a daemon.
type gap struct{ from, to time.Time }

// met tells whether a request met the gap: it was under way when the daemon was
// killed, or began before the next one was there.
func (g gap) met(f failure) bool { return f.ended.After(g.from) && f.began.Before(g.to) }
