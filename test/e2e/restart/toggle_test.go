package restart

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"cupola/test/e2e"
)

// TestToggles stops and starts an app a hundred times while requests flow and
// the daemon is killed now and then. In the end there are exactly the instances
// that are wanted, all of the last revision.
func TestToggles(t *testing.T) {
	t.Parallel()
	const toggles, kills, instances = 100, 4, 3
	d := e2e.StartDaemon(t, e2e.NeedBinary(t))
	if out, err := d.Run("push", e2e.Example(t, "node")); err != nil {
		t.Fatalf("push: %v\n%s", err, out)
	}
	d.API("POST", "/v3/apps/"+d.App("hello-node")+"/processes/web/actions/scale", e2e.Doc{"instances": instances}, nil)
	before := d.Running("hello-node", "web", instances)
	load := d.Send("hello-node.localhost", 50)
	g := &toggler{client: d.Client(), app: d.App("hello-node")}
	stop := g.watch(t, instances)
	at := map[int]bool{}
	for len(at) < kills {
		at[1+rand.IntN(toggles-1)] = true
	}
	var gaps []e2e.Gap
	for n := range toggles {
		g.post(t, "stop")
		if at[n] && n%2 == 0 {
			gaps = append(gaps, g.killed(d))
		}
		g.post(t, "start")
		if at[n] && n%2 == 1 {
			gaps = append(gaps, g.killed(d))
		}
		if n%20 == 0 {
			d.Answers("hello-node", "hello from") // or no start would ever get that far
		}
	}
	polls := stop()
	for _, f := range load.End(t, gaps...) {
		if f.What[:3] != "404" && f.What[:3] != "503" {
			t.Errorf("a request of %s failed after %v other than for want of an instance: %s", f.Began.Format(time.StampMilli), f.Ended.Sub(f.Began), f.What)
		}
	}
	after := d.Running("hello-node", "web", instances)
	replaced(t, before, after)
	clean(d, "hello-node", instances)
	if left := d.Containers(); !slices.Equal(left, e2e.GUIDs(after)) {
		t.Errorf("got containers %v; want those of %+v", left, after)
	}
	t.Logf("%d kills, stats were right at %d polls", len(gaps), polls)
}

// toggler stops and starts an app.
type toggler struct {
	client *e2e.Client
	app    string

	mu sync.RWMutex // held while there is no daemon
}

// killed kills the daemon at a random point of what it does now, and starts
// another.
func (g *toggler) killed(d *e2e.Daemon) e2e.Gap {
	g.mu.Lock()
	defer g.mu.Unlock()
	<-time.After(rand.N(100 * time.Millisecond))
	from := time.Now()
	d.Kill()
	d.Start()
	return e2e.Gap{From: from, To: time.Now()}
}

func (g *toggler) post(t *testing.T, action string) {
	t.Helper()
	if err := g.client.Call(context.Background(), "POST", "/v3/apps/"+g.app+"/actions/"+action, nil, nil); err != nil {
		t.Fatalf("%s: %v", action, err)
	}
}

// watch polls the stats until it is stopped, which tells how often they were
// right: each time there is one entry for each index that is wanted.
func (g *toggler) watch(t *testing.T, instances int) (stop func() (polls int)) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan int)
	go func() {
		polls := 0
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for ctx.Err() == nil {
			if why := g.poll(ctx, instances); why != "" && ctx.Err() == nil {
				t.Errorf("stats at poll %d: %s", polls, why)
			}
			polls++
			<-tick.C
		}
		done <- polls
	}()
	return func() int { cancel(); return <-done }
}

// poll reads the stats without having its answers held.
func (g *toggler) poll(ctx context.Context, instances int) string {
	g.mu.RLock()
	defer g.mu.RUnlock()
	req, err := http.NewRequestWithContext(ctx, "GET", g.client.URL("/v3/apps/"+g.app+"/processes/web/stats"), nil)
	if err != nil {
		return err.Error()
	}
	req.Header.Set("Authorization", "bearer "+g.client.Token)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err.Error()
	}
	defer res.Body.Close()
	var stats struct{ Resources, Stopping []e2e.Instance }
	if err := json.NewDecoder(res.Body).Decode(&stats); err != nil {
		return err.Error()
	}
	return oncePerIndex(stats.Resources, stats.Stopping, instances)
}

// oncePerIndex says what is wrong: an index is missing or there twice, or an
// instance is shown both as current and as leaving.
func oncePerIndex(current, leaving []e2e.Instance, want int) string {
	if len(current) != want {
		return fmt.Sprintf("got %d entries; want %d: %+v", len(current), want, current)
	}
	for n, i := range current {
		if i.Index != n {
			return fmt.Sprintf("entry %d is of index %d", n, i.Index)
		}
	}
	for _, l := range leaving {
		if l.State != "STOPPING" {
			return fmt.Sprintf("instance %s leaves and is %s", l.InstanceGUID, l.State)
		}
		if slices.Contains(e2e.GUIDs(current), l.InstanceGUID) {
			return "instance " + l.InstanceGUID + " is shown twice"
		}
	}
	return ""
}
