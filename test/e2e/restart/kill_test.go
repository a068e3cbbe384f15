package restart

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"cupola/test/e2e"
)

// kills is how often the daemon is killed.
const kills = 20

// TestKilledUnderLoad kills the daemon again and again while requests go to an
// app through its own address: none of them may fail, the app's processes stay,
// and the routes are back within a second of the restart, nine times of ten.
func TestKilledUnderLoad(t *testing.T) {
	t.Parallel()
	d := e2e.StartDaemon(t, e2e.NeedBinary(t))
	if out, err := d.Run("push", e2e.Example(t, "node")); err != nil {
		t.Fatalf("push: %v\n%s", err, out)
	}
	d.API("POST", "/v3/apps/"+d.App("hello-node")+"/processes/web/actions/scale", e2e.Doc{"instances": 2}, nil)
	before := d.Running("hello-node", "web", 2)
	pids := d.Processes(t)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var sent, failed atomic.Int64
	for _, i := range before {
		go e2e.Load(ctx, "http://"+i.Host+":8080/health", &sent, &failed)
	}
	var slow []time.Duration
	for range kills {
		d.Kill()
		d.Start()
		started := time.Now()
		e2e.Eventually(t, time.Minute, func() string {
			status, body, err := d.Get("hello-node.localhost", "/health")
			if err == nil && status == 200 {
				return ""
			}
			return fmt.Sprint(status, body, err)
		})
		if took := time.Since(started); took > time.Second {
			slow = append(slow, took)
		}
	}
	cancel()
	if len(slow) > kills/10 { // other tests of this machine may hold one up
		t.Errorf("routing was back after %v in %d of %d times; want within a second", slow, len(slow), kills)
	}
	if failed.Load() > 0 || sent.Load() < kills {
		t.Errorf("%d of %d requests failed", failed.Load(), sent.Load())
	}
	after := d.Running("hello-node", "web", 2)
	for i := range before {
		if before[i].InstanceGUID != after[i].InstanceGUID {
			t.Errorf("instance %d was replaced", i)
		}
	}
	if now := d.Processes(t); !slices.Equal(pids, now) {
		t.Errorf("got processes %v; want %v", now, pids)
	}
	t.Logf("%d requests, none failed", sent.Load())
}
