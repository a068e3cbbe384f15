package bbs

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"cupola/server/bbs/bbspb"
	"cupola/store"
	"cupola/test/e2e"
)

// owner gets the callbacks of tasks.
type owner struct {
	*httptest.Server
	deaf     atomic.Bool // takes calls and answers none
	asked    chan string // tasks whose callback came, answered or not
	received chan map[string]any
}

func newOwner(t testing.TB) *owner {
	o := &owner{asked: make(chan string, 100), received: make(chan map[string]any, 100)}
	o.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var body map[string]any
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		o.asked <- fmt.Sprint(body["task_guid"])
		if o.deaf.Load() {
			<-r.Context().Done()
			return
		}
		o.received <- body
	}))
	t.Cleanup(o.Close)
	return o
}

// await waits for the callback of a task.
func (o *owner) await(t testing.TB, guid string) map[string]any {
	t.Helper()
	for limit := time.After(60 * time.Second); ; {
		select {
		case body := <-o.received:
			if body["task_guid"] == guid {
				return body
			}
			t.Errorf("got %v", body)
		case <-limit:
			t.Fatalf("the owner was not told of %s", guid)
		}
	}
}

// survivesKill kills the daemon while a task runs, while an owner is being told
// of another's end, and while the rows lose a DesiredLRP whose domain is stale.
// It returns what to look at when Diego's 30 s have passed.
func (b *bbsClient) survivesKill(o *owner) (later func(*bbsClient)) {
	o.deaf.Store(true)
	task := func(guid, script string) {
		b.must("/v1/tasks/desire.r2", &bbspb.DesireTaskRequest{TaskGuid: guid, Domain: "tests", Definition: &bbspb.TaskDefinition{RootFs: "preloaded:minifs", MemoryMb: 64, ResultFile: "/tmp/r",
			Action: serial(shell("echo begun > /tmp/r"), shell(script), shell("echo done >> /tmp/r")), CompletionCallbackUrl: o.URL, LogGuid: guid, LogSource: "T", MetricTags: tags(guid)}})
	}
	task("across", "echo it runs; sleep 15") // until the next daemon has adopted it: its exit code would be lost
	task("told", "exit 0")
	b.must("/v1/desired_lrp/desire.r2", &bbspb.DesireLRPRequest{DesiredLrp: &bbspb.DesiredLRP{ProcessGuid: "orphan", Domain: "stale", RootFs: "preloaded:minifs", Instances: 1, MemoryMb: 64,
		Action: shell("sleep 1000"), LogGuid: "orphan", MetricTags: tags("orphan")}})
	before := b.runningLRPs("orphan", 1)[0]
	if guid := <-o.asked; guid != "told" {
		b.T.Errorf("the owner got a callback of %s", guid)
	}
	b.logHas("across", "it runs") // a container that is still being made does not survive
	b.Kill()
	b.forgets("orphan")
	o.deaf.Store(false)
	b.Start()
	b.url = bbs(b.Daemon).url
	if got := o.await(b.T, "across"); got["failed"] != false || got["result"] != "begun\ndone\n" {
		b.T.Errorf("got %v", got)
	}
	return func(b *bbsClient) {
		if got := o.await(b.T, "told"); got["failed"] != false || got["result"] != "begun\ndone\n" {
			b.T.Errorf("got %v", got)
		}
		if after := b.runningLRPs("orphan", 1)[0]; after.InstanceKey.InstanceGuid != before.InstanceKey.InstanceGuid {
			b.T.Errorf("got %v; want %v", after, before)
		}
		b.must("/v1/domains/upsert", &bbspb.UpsertDomainRequest{Domain: "stale", Ttl: 60})
		e2e.Eventually(b.T, time.Minute, func() string {
			if left := b.actuals("orphan"); len(left) > 0 {
				return fmt.Sprint(left)
			}
			return ""
		})
	}
}

// forgets takes a DesiredLRP out of the rows of a daemon that does not run. No
// call does that alone: it ends the instances too.
func (b *bbsClient) forgets(guid string) {
	b.T.Helper()
	s, err := store.Open(store.Config{Dir: filepath.Join(b.Dir, "db")})
	if err != nil {
		b.T.Fatal(err)
	}
	defer s.Close()
	err = s.Write(context.Background(), func(tx *store.Tx) error {
		_, err := store.BBSDesireds.Delete(tx, guid)
		return err
	})
	if err != nil {
		b.T.Fatal(err)
	}
}

// TestBBSActions shows Diego's rules on real containers, by the API alone.
func TestBBSActions(t *testing.T) {
	t.Parallel()
	d := e2e.StartDaemon(t, e2e.NeedBinary(t), "--bbs", "127.0.0.1:0")
	bbs(d).must("/v1/domains/upsert", &bbspb.UpsertDomainRequest{Domain: "tests"})
	o := newOwner(t)
	var later, moody, stubborn func(*bbsClient)
	t.Run("kill", func(t *testing.T) {
		b := bbs(d.On(t))
		defer func() { d.Cmd = b.Cmd }()
		later = b.survivesKill(o)
	})
	t.Run("monitor", func(t *testing.T) { moody = bbs(d.On(t)).monitorTurnsBad() })
	t.Run("stop", func(t *testing.T) { stubborn = bbs(d.On(t)).stubbornIsKilled() })
	t.Run("place", func(t *testing.T) { bbs(d.On(t)).lrpsFindNoPlace() })
	t.Run("whole", func(t *testing.T) { bbs(d.On(t)).lrpHasAll() })
	t.Run("reasons", func(t *testing.T) { bbs(d.On(t)).lrpsCrash() })
	t.Run("tasks", func(t *testing.T) { bbs(d.On(t)).tasksEnd() })
	t.Run("bad", func(t *testing.T) { bbs(d.On(t)).lrpsTurnBad() })
	t.Run("egress", func(t *testing.T) { bbs(d.On(t)).egressHolds() })
	for name, look := range map[string]func(*bbsClient){"later": later, "moody": moody, "stopped": stubborn} {
		if look != nil {
			t.Run(name, func(t *testing.T) { look(bbs(d.On(t))) })
		}
	}
}
