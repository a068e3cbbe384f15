package reconcile

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"cupola/runtime/lrp"
	"cupola/server/bbs/bbspb"
	"cupola/store"
	"cupola/store/cf"
)

// desire makes the rows say what a client of the BBS asked for.
func (h *harness) desire(d *bbspb.DesiredLRP) {
	h.t.Helper()
	h.write(func(tx *store.Tx) error {
		row := &store.BBSDesired{ProcessGUID: d.ProcessGuid, Domain: d.Domain, Instances: int(d.Instances)}
		return store.BBSDesireds.Insert(tx, row, func(t lrp.Tag) ([]byte, error) {
			d.ModificationTag = &bbspb.ModificationTag{Epoch: t.Epoch, Index: t.Index}
			return proto.Marshal(d)
		})
	})
}

func bbsLRP(instances int32) *bbspb.DesiredLRP {
	return &bbspb.DesiredLRP{ProcessGuid: "p", Domain: "tests", RootFs: "preloaded:minifs", Instances: instances, LogGuid: "log",
		Action: &bbspb.Action{Run: &bbspb.Run{Path: "/bin/true", User: "vcap"}}, MetricTags: map[string]*bbspb.MetricTagValue{"a": {Static: "b"}}}
}

func (h *harness) fresh(domain string, until time.Time) {
	h.t.Helper()
	h.write(func(tx *store.Tx) error {
		return store.BBSDomains.Put(tx, &store.BBSDomain{Name: domain, ExpiresAt: until})
	})
}

// TestABBSCrashLoopFollowsDiegosTable is Diego's table for an LRP of the BBS,
// to the last crash after which it is not started again.
func TestABBSCrashLoopFollowsDiegosTable(t *testing.T) {
	withHarness(t, func(t *testing.T, h *harness) {
		h.desire(bbsLRP(1))
		for count := 1; ; count++ {
			if count == 9 { // the same until 200
				h.write(func(tx *store.Tx) error {
					was := *h.actuals()[0]
					next := was
					count, next.CrashCount = 198, 197
					_, err := store.ActualLRPs.Swap(tx, was, next)
					return err
				})
			}
			h.cell.crash(h.cell.guids(lrp.PhaseCreating)[0], strings.Repeat("x", 2000))
			h.wait()
			if got := h.actuals()[0]; got.CrashCount != count || len(got.CrashReason) != 1024 || !strings.HasSuffix(got.CrashReason, "(truncated)") {
				t.Fatalf("crash %d: got %d, a reason of %d", count, got.CrashCount, len(got.CrashReason))
			}
			if count < 3 {
				h.wantStates("0:CLAIMED ")
				continue
			}
			h.wantStates("0:CRASHED ")
			if count == 200 {
				break
			}
			wait := 30 * time.Second << min(count-3, 5)
			h.pass(wait - time.Millisecond)
			h.wantStates("0:CRASHED ")
			h.pass(time.Millisecond)
			h.wantStates("0:CLAIMED ")
		}
		h.pass(time.Hour)
		h.wantStates("0:CRASHED ")
	})
}

// TestOnlyFreshDomainsLoseWhatIsNotDesired wants an instance of which no row
// says any longer that it is desired to go on until its domain is fresh.
func TestOnlyFreshDomainsLoseWhatIsNotDesired(t *testing.T) {
	withHarness(t, func(t *testing.T, h *harness) {
		h.desire(bbsLRP(2))
		h.runAll()
		h.fresh("tests", time.Now().Add(time.Minute))
		h.pass(2 * time.Minute)
		h.write(func(tx *store.Tx) error { // as no client does: its call also retires the instances
			_, err := store.BBSDesireds.Delete(tx, "p")
			return err
		})
		h.wantStates("0:RUNNING 1:RUNNING ")
		h.pass(time.Hour)
		h.wantStates("0:RUNNING 1:RUNNING ")
		h.fresh("tests", time.Time{})
		h.wantStates("0:RUNNING(stopping) 1:RUNNING(stopping) ")
		h.exitAll()
		h.wantStates("")
	})
}

// TestABBSTask wants what becomes of a task to be in its owner's row.
func TestABBSTask(t *testing.T) {
	long := make([]byte, maxResult+1)
	for _, c := range []struct {
		what  string
		event lrp.Event
		want  store.BBSTask
	}{
		{"done", lrp.Event{Result: []byte("42")}, store.BBSTask{Result: []byte("42")}},
		{"failed", lrp.Event{Exit: lrp.Exit{Failed: true, Reason: "T: Exited with status 3"}, Result: []byte("42")}, store.BBSTask{Failed: true, FailureReason: "T: Exited with status 3"}},
		{"too long a result", lrp.Event{Result: long}, store.BBSTask{Failed: true, FailureReason: "failed to fetch result"}},
	} {
		t.Run(c.what, func(t *testing.T) {
			withHarness(t, func(t *testing.T, h *harness) {
				h.task()
				guid := h.cell.guids(lrp.PhaseCreating)[0]
				if got := get(h, store.BBSTasks.Table, "t"); got.State != lrp.TaskRunning || got.CellID != "cell-1" || got.RunGUID != guid {
					t.Errorf("got %+v", got)
				}
				h.cell.exit(guid, c.event)
				h.wait()
				got := get(h, store.BBSTasks.Table, "t")
				if got.State != lrp.TaskCompleted || got.CellID != "" || got.Failed != c.want.Failed || got.FailureReason != c.want.FailureReason ||
					string(got.Result) != string(c.want.Result) || !got.FirstCompletedAt.Equal(time.Now()) {
					t.Errorf("got %+v; want %+v", got, c.want)
				}
			})
		})
	}
}

func (h *harness) task() {
	h.t.Helper()
	definition, err := proto.Marshal(&bbspb.TaskDefinition{RootFs: "preloaded:minifs", MemoryMb: 64, Action: bbsLRP(0).Action})
	if err != nil {
		h.t.Fatal(err)
	}
	h.write(func(tx *store.Tx) error {
		return store.BBSTasks.Insert(tx, &store.BBSTask{GUID: "t", RunGUID: "run-t", Domain: "tests", State: lrp.TaskPending, Definition: definition})
	})
}

// TestABBSTaskIsRejectedThreeTimes and then failed, with the reason.
func TestABBSTaskIsRejectedThreeTimes(t *testing.T) {
	withHarness(t, func(t *testing.T, h *harness) {
		h.cell.presence.RootFSes = nil
		h.task()
		const reason = "found no compatible cell for required rootfs"
		for i := range 3 {
			if got := get(h, store.BBSTasks.Table, "t"); got.State != lrp.TaskPending || got.Rejections != i+1 || got.RejectionReason != reason {
				t.Fatalf("rejection %d: got %+v", i+1, got)
			}
			h.pass(30 * time.Second)
		}
		if got := get(h, store.BBSTasks.Table, "t"); got.State != lrp.TaskCompleted || !got.Failed || got.FailureReason != reason {
			t.Errorf("got %+v", got)
		}
	})
}

// TestACancelledBBSTaskIsStopped when its row says that it is not wanted.
func TestACancelledBBSTaskIsStopped(t *testing.T) {
	withHarness(t, func(t *testing.T, h *harness) {
		h.task()
		h.write(func(tx *store.Tx) error {
			row, err := store.BBSTasks.Get(tx, "t")
			if err != nil {
				return err
			}
			return store.BBSTasks.Change(tx, row, func(t *store.BBSTask) {
				t.State, t.Failed, t.FailureReason = lrp.TaskCompleted, true, "task was cancelled"
			})
		})
		if got := h.cell.guids(lrp.PhaseStopping); len(got) != 1 {
			t.Fatalf("got %v stopping", got)
		}
		h.exitAll()
		if got := get(h, store.BBSTasks.Table, "t"); got.FailureReason != "task was cancelled" {
			t.Errorf("got %+v", got)
		}
	})
}

// TestAnImageOfTheBBSIsPulledFirst wants nothing to be placed before the image
// is there, and what runs to name its digest and have its environment.
func TestAnImageOfTheBBSIsPulledFirst(t *testing.T) {
	withHarness(t, func(t *testing.T, h *harness) {
		arrived := make(chan error)
		h.pull = func(p ImagePull) (Image, error) {
			if p.Reference != "docker:///busybox#1" || p.Credential != (cf.Credential{Username: "u", Password: "p"}) {
				t.Errorf("got %+v", p)
			}
			return Image{StackImage: cf.StackImage{Reference: "docker://docker.io/library/busybox@sha256:1", Env: []string{"PATH=/x"}}}, <-arrived
		}
		h.cell.presence.RootFSProviders = []string{"docker"}
		d := bbsLRP(1)
		d.RootFs, d.ImageUsername, d.ImagePassword = "docker:///busybox#1", "u", "p"
		h.desire(d)
		h.pass(time.Minute)
		h.wantStates("0:UNCLAIMED ")
		arrived <- errors.New("no such host") // the cell is left to fail
		h.wait()
		h.wantStates("0:CLAIMED ")
		if got := h.cell.take(h.cell.guids(lrp.PhaseCreating)[0], nil).spec; got.RootFS != d.RootFs {
			t.Errorf("got %s", got.RootFS)
		}
		for range 3 {
			h.cell.crash(h.cell.guids(lrp.PhaseCreating)[0], "failed to create container")
			h.wait()
		}
		h.pass(time.Minute)
		h.wantStates("0:UNCLAIMED ") // it is pulled again
		arrived <- nil
		h.wait()
		got := h.cell.take(h.cell.guids(lrp.PhaseCreating)[0], nil).spec
		if got.RootFS != "docker://docker.io/library/busybox@sha256:1" || len(got.Env) != 1 || got.Env[0] != (lrp.EnvVar{Name: "PATH", Value: "/x"}) {
			t.Errorf("got %+v", got)
		}
	})
}

// TestRoutesOfApps reads the routes that lead to a process, one for each destination
// (CC: diego/protocol/routing_info.rb).
func TestRoutesOfApps(t *testing.T) {
	withHarness(t, func(t *testing.T, h *harness) {
		app, p := h.app("hello", 1, 64)
		p.Placement.Segment = "red"
		h.write(func(tx *store.Tx) error {
			domain := &cf.Domain{Name: "example.com", EnforcesPolicies: true, PoliciesScope: "any"}
			internal := &cf.Domain{Name: "apps.internal", Internal: true}
			if err := errors.Join(store.Processes.Update(tx, p), store.Domains.Insert(tx, domain), store.Domains.Insert(tx, internal)); err != nil {
				return err
			}
			to := func(port int, kind string) cf.Destination {
				return cf.Destination{GUID: kind + strconv.Itoa(port), AppGUID: app.GUID, ProcessType: kind, Port: port, Protocol: "http2"}
			}
			front := &cf.Route{SpaceGUID: app.SpaceGUID, DomainGUID: domain.GUID, Host: "front", Destinations: []cf.Destination{to(0, "web"), to(9000, "web"), to(0, "worker")}}
			back := &cf.Route{SpaceGUID: app.SpaceGUID, DomainGUID: internal.GUID, Host: "back", Destinations: []cf.Destination{to(0, "web")}}
			if err := errors.Join(store.Routes.Insert(tx, front), store.Routes.Insert(tx, back)); err != nil {
				return err
			}
			return store.RoutePolicies.Insert(tx, &cf.RoutePolicy{RouteGUID: front.GUID, Source: cf.AnySource})
		})
		var got []string
		h.read(func(tx *store.Tx) error {
			apps, err := h.loop.Apps(tx)
			for _, a := range apps {
				got = append(got, a.Segment)
				for _, r := range a.Routes {
					got = append(got, fmt.Sprint(r.Host, ".", r.Domain.Name, " ", r.ToPort, " ", r.Protocol, " ", r.Sources))
				}
			}
			return err
		})
		want := []string{"red", "front.example.com 0 http2 [cf:any]", "front.example.com 9000 http2 [cf:any]", "back.apps.internal 0 http2 []"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	})
}
