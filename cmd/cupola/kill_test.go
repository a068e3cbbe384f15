package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// kills is how often the daemon is killed.
const kills = 20

// TestKilledUnderLoad kills the daemon again and again while requests go to an
// app through its own address: none of them may fail, the app's processes stay,
// and the routes are back within a second of the restart.
func TestKilledUnderLoad(t *testing.T) {
	t.Parallel()
	d := startDaemon(t, needBinary(t))
	if out, err := d.run("push", example(t, "node")); err != nil {
		t.Fatalf("push: %v\n%s", err, out)
	}
	d.api("POST", "/v3/apps/"+d.app("hello-node")+"/processes/web/actions/scale", doc{"instances": 2}, nil)
	before := d.running("hello-node", "web", 2)
	pids := d.processes(t)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var sent, failed atomic.Int64
	for _, i := range before {
		go load(ctx, "http://"+i.Host+":8080/health", &sent, &failed)
	}
	for range kills {
		d.kill()
		d.start()
		started := time.Now()
		eventually(t, 10*time.Second, func() string {
			status, body, err := d.get("hello-node.localhost", "/health")
			if err == nil && status == 200 {
				return ""
			}
			return fmt.Sprint(status, body, err)
		})
		if took := time.Since(started); took > time.Second {
			t.Errorf("routing was back after %v; want within a second", took)
		}
	}
	cancel()
	if failed.Load() > 0 || sent.Load() < kills {
		t.Errorf("%d of %d requests failed", failed.Load(), sent.Load())
	}
	after := d.running("hello-node", "web", 2)
	for i := range before {
		if before[i].InstanceGUID != after[i].InstanceGUID {
			t.Errorf("instance %d was replaced", i)
		}
	}
	if now := d.processes(t); !slices.Equal(pids, now) {
		t.Errorf("got processes %v; want %v", now, pids)
	}
	t.Logf("%d requests, none failed", sent.Load())
}

// load asks until ctx ends, one request after the other, each on a connection
// of its own.
func load(ctx context.Context, url string, sent, failed *atomic.Int64) {
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
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

// processes are the PIDs of this daemon's containers: inits and node.
func (d *daemon) processes(t *testing.T) (pids []string) {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		cgroup, err := os.ReadFile("/proc/" + e.Name() + "/cgroup")
		if err == nil && containsInstance(string(cgroup), d) {
			pids = append(pids, e.Name())
		}
	}
	slices.Sort(pids)
	if len(pids) < 4 {
		t.Fatalf("got processes %v; want an init and its app of two instances", pids)
	}
	return pids
}

func containsInstance(cgroup string, d *daemon) bool {
	states, err := os.ReadDir(d.dir + "/cell")
	if err != nil {
		return false
	}
	for _, s := range states {
		if strings.Contains(cgroup, s.Name()) {
			return true
		}
	}
	return false
}
