package main

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
)

// owner is told how tasks ended.
type owner struct {
	*httptest.Server
	deaf  atomic.Bool // takes calls and answers none
	asked chan string // tasks of which it was told, answered or not
	told  chan map[string]any
}

func newOwner(t testing.TB) *owner {
	o := &owner{asked: make(chan string, 100), told: make(chan map[string]any, 100)}
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
		o.told <- body
	}))
	t.Cleanup(o.Close)
	return o
}

// await waits until the owner is told of a task.
func (o *owner) await(t testing.TB, guid string) map[string]any {
	t.Helper()
	for limit := time.After(60 * time.Second); ; {
		select {
		case body := <-o.told:
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
	task("across", "sleep 4")
	task("told", "exit 0")
	b.must("/v1/desired_lrp/desire.r2", &bbspb.DesireLRPRequest{DesiredLrp: &bbspb.DesiredLRP{ProcessGuid: "orphan", Domain: "stale", RootFs: "preloaded:minifs", Instances: 1, MemoryMb: 64,
		Action: shell("sleep 1000"), LogGuid: "orphan", MetricTags: tags("orphan")}})
	before := b.runningLRPs("orphan", 1)[0]
	if guid := <-o.asked; guid != "told" {
		b.t.Errorf("the owner was told of %s", guid)
	}
	b.kill()
	b.forgets("orphan")
	o.deaf.Store(false)
	b.start()
	b.url = b.daemon.bbs().url
	if got := o.await(b.t, "across"); got["failed"] != false || got["result"] != "begun\ndone\n" {
		b.t.Errorf("got %v", got)
	}
	return func(b *bbsClient) {
		if got := o.await(b.t, "told"); got["failed"] != false || got["result"] != "begun\ndone\n" {
			b.t.Errorf("got %v", got)
		}
		if after := b.runningLRPs("orphan", 1)[0]; after.InstanceKey.InstanceGuid != before.InstanceKey.InstanceGuid {
			b.t.Errorf("got %v; want %v", after, before)
		}
		b.must("/v1/domains/upsert", &bbspb.UpsertDomainRequest{Domain: "stale", Ttl: 60})
		eventually(b.t, 30*time.Second, func() string {
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
	b.t.Helper()
	s, err := store.Open(store.Config{Dir: filepath.Join(b.dir, "db")})
	if err != nil {
		b.t.Fatal(err)
	}
	defer s.Close()
	err = s.Write(context.Background(), func(tx *store.Tx) error {
		_, err := tx.DeleteBBSDesired(guid)
		return err
	})
	if err != nil {
		b.t.Fatal(err)
	}
}

// TestBBSActions shows Diego's rules on real containers, by the API alone.
func TestBBSActions(t *testing.T) {
	t.Parallel()
	d := startDaemon(t, needBinary(t), "--bbs", "127.0.0.1:0")
	d.bbs().must("/v1/domains/upsert", &bbspb.UpsertDomainRequest{Domain: "tests"})
	o := newOwner(t)
	var later, moody, stubborn func(*bbsClient)
	t.Run("kill", func(t *testing.T) {
		b := d.on(t).bbs()
		defer func() { d.cmd = b.cmd }()
		later = b.survivesKill(o)
	})
	t.Run("monitor", func(t *testing.T) { moody = d.on(t).bbs().monitorTurnsBad() })
	t.Run("stop", func(t *testing.T) { stubborn = d.on(t).bbs().stubbornIsKilled() })
	t.Run("place", func(t *testing.T) { d.on(t).bbs().lrpsFindNoPlace() })
	t.Run("whole", func(t *testing.T) { d.on(t).bbs().lrpHasAll() })
	t.Run("reasons", func(t *testing.T) { d.on(t).bbs().lrpsCrash() })
	t.Run("tasks", func(t *testing.T) { d.on(t).bbs().tasksEnd() })
	t.Run("bad", func(t *testing.T) { d.on(t).bbs().lrpsTurnBad() })
	t.Run("egress", func(t *testing.T) { d.on(t).bbs().egressHolds() })
	for name, look := range map[string]func(*bbsClient){"later": later, "moody": moody, "stopped": stubborn} {
		if look != nil {
			t.Run(name, func(t *testing.T) { look(d.on(t).bbs()) })
		}
	}
}
