package bbs

import (
	"fmt"
	"testing"
	"time"

	"cupola/server/bbs/bbspb"
	"cupola/test/e2e"
)

// lrpsFindNoPlace wants Diego's placement errors, and a task to be rejected with
// one.
func (b *bbsClient) lrpsFindNoPlace() {
	forever := func() *bbspb.DesiredLRP {
		return &bbspb.DesiredLRP{Domain: "tests", RootFs: "preloaded:minifs", Instances: 1, MemoryMb: 64, Action: shell("sleep 1000")}
	}
	cases := map[string]struct {
		change func(*bbspb.DesiredLRP)
		want   string
	}{
		"rootfs":   {func(d *bbspb.DesiredLRP) { d.RootFs = "preloaded:lucid64" }, "found no compatible cell for required rootfs"},
		"provider": {func(d *bbspb.DesiredLRP) { d.RootFs = "nobody:///it" }, "found no compatible cell for required rootfs"},
		"volumes": {func(d *bbspb.DesiredLRP) {
			d.VolumeMounts = []*bbspb.VolumeMount{{Driver: "nfs", ContainerDir: "/v", Mode: "r", Shared: &bbspb.SharedDevice{VolumeId: "v"}}}
		}, "found no compatible cell with required volume drivers"},
		"tag":    {func(d *bbspb.DesiredLRP) { d.PlacementTags = []string{"a"} }, `found no compatible cell with placement tag "a"`},
		"tags":   {func(d *bbspb.DesiredLRP) { d.PlacementTags = []string{"a", "b", "c"} }, `found no compatible cell with placement tags "a", "b" and "c"`},
		"memory": {func(d *bbspb.DesiredLRP) { d.MemoryMb = 1 << 30 }, "insufficient resources: memory"},
		"both":   {func(d *bbspb.DesiredLRP) { d.MemoryMb, d.DiskMb = 1<<30, 1<<30 }, "insufficient resources: disk, memory"},
	}
	for name, c := range cases {
		d := forever()
		d.ProcessGuid, d.MetricTags = "no-"+name, tags("no-"+name)
		c.change(d)
		b.must("/v1/desired_lrp/desire.r2", &bbspb.DesireLRPRequest{DesiredLrp: d})
	}
	b.must("/v1/tasks/desire.r2", &bbspb.DesireTaskRequest{TaskGuid: "nowhere", Domain: "rejected", Definition: &bbspb.TaskDefinition{RootFs: "preloaded:lucid64", Action: shell("exit 0"), MetricTags: tags("nowhere")}})
	for name, c := range cases {
		e2e.Eventually(b.T, time.Minute, func() string {
			if a := b.actuals("no-" + name)[0]; a.State != "UNCLAIMED" || a.PlacementError != c.want || a.CrashCount != 0 {
				return fmt.Sprintf("got %v; want %q", a, c.want)
			}
			return ""
		})
		b.removeLRP("no-" + name)
	}
	e2e.Eventually(b.T, time.Minute, func() string {
		res := &bbspb.TaskResponse{}
		b.ask("/v1/tasks/get_by_task_guid.r3", &bbspb.TaskGUIDRequest{TaskGuid: "nowhere"}, res)
		if t := res.Task; t.GetState() != bbspb.TaskState_TASK_STATE_PENDING || t.RejectionCount < 1 || t.RejectionReason != "found no compatible cell for required rootfs" {
			return fmt.Sprint(res)
		}
		return ""
	})
	b.must("/v1/tasks/cancel", &bbspb.TaskGUIDRequest{TaskGuid: "nowhere"})
}

// stubbornIsKilled removes an LRP that does not end when it is asked to. It
// returns what to look at when Diego's 10 s have passed.
func (b *bbsClient) stubbornIsKilled() (later func(*bbsClient)) {
	d := probeLRP("stubborn", probeTar(b.T.(*testing.T)))
	d.Action.Run.Args = []string{"stubborn"}
	b.must("/v1/desired_lrp/desire.r2", &bbspb.DesireLRPRequest{DesiredLrp: d})
	b.logHas("stubborn", "L: deaf to SIGTERM")
	b.removeLRP("stubborn")
	return func(b *bbsClient) {
		e2e.Eventually(b.T, time.Minute, func() string {
			if left := b.actuals("stubborn"); len(left) > 0 {
				return fmt.Sprint(left)
			}
			return ""
		})
		b.logHas("stubborn", "L: Exit status 137 (exceeded 10s graceful shutdown interval)")
	}
}
