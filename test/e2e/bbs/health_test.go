package bbs

import (
	"fmt"
	"testing"
	"time"

	"cupola/server/bbs/bbspb"
	"cupola/test/e2e"
)

// badCase is an LRP that is healthy until one of its ports is closed, or one of
// its answers becomes bad.
type badCase struct {
	checks *bbspb.CheckDefinition
	turn   string // asked for to turn it bad
	reason string // an expression
}

// lrpsTurnBad wants Diego's reasons of instances that were healthy.
func (b *bbsClient) lrpsTurnBad() {
	const bad = `Instance became unhealthy: Liveness check unsuccessful: failed to make `
	live := func(c *bbspb.Check) *bbspb.CheckDefinition {
		return &bbspb.CheckDefinition{Checks: []*bbspb.Check{c}}
	}
	cases := map[string]badCase{
		"tcp":  {live(&bbspb.Check{Tcp: &bbspb.TCPCheck{Port: 9000, IntervalMs: 200}}), "/shut?port=9000", bad + `TCP connection to [\d.]+:9000: dial tcp [\d.]+:9000: connect: connection refused`},
		"http": {live(&bbspb.Check{Http: &bbspb.HTTPCheck{Port: 9000, Path: "/ping", IntervalMs: 200}}), "/shut?port=9000", bad + `HTTP request to '/ping' on port 9000: connection refused`},
		"code": {live(&bbspb.Check{Http: &bbspb.HTTPCheck{Port: 8080, Path: "/health?name=a", IntervalMs: 200}}), "/health?name=a&set=204", bad + `HTTP request to '/health\?name=a' on port 8080: received status code 204 in \d+ms`},
		"slow": {live(&bbspb.Check{Http: &bbspb.HTTPCheck{Port: 8080, Path: "/health?name=a", IntervalMs: 200}}), "/health?name=a&set=1", bad + `HTTP request to '/health\?name=a' on port 8080: timed out after 1\.00 seconds`},
	}
	probe := probeTar(b.T.(*testing.T))
	for name, c := range cases {
		b.desireProbe("bad-"+name, probe, c.checks)
	}
	b.desireProbe("unready", probe, &bbspb.CheckDefinition{ReadinessChecks: []*bbspb.Check{{Tcp: &bbspb.TCPCheck{Port: 9000, IntervalMs: 200}}}})
	for name, c := range cases {
		b.inside(b.runningLRPs("bad-"+name, 1)[0], 8080, c.turn)
	}
	b.becomesReady("unready")
	for name, c := range cases {
		b.comesTo("bad-"+name, c.reason)
		b.logHasAll("bad-"+name, "HEALTH: Liveness check unsuccessful: failed to make ", "CELL: Container became unhealthy")
		b.removeLRP("bad-" + name)
	}
	b.removeLRP("unready")
}

// probeLRP is an instance of the probe with a port 9000 and a route.
func probeLRP(guid, archive string) *bbspb.DesiredLRP {
	return &bbspb.DesiredLRP{
		ProcessGuid: guid, Domain: "tests", RootFs: "preloaded:minifs", Instances: 1, MemoryMb: 64, DiskMb: 64, LogGuid: guid, LogSource: "L", MetricTags: tags(guid),
		Setup:  &bbspb.Action{Download: &bbspb.Download{From: archive, To: ".", User: "vcap"}},
		Action: &bbspb.Action{Run: &bbspb.Run{Path: "/home/vcap/probe", User: "vcap", Env: []*bbspb.Env{{Name: "PORT", Value: "8080"}, {Name: "LISTEN_PORTS", Value: "9000"}}}},
		Ports:  []uint32{8080},
		Routes: &bbspb.Routes{Routes: map[string][]byte{"cf-router": []byte(`[{"hostnames":["` + guid + `.bbs.test"],"port":8080}]`)}},
	}
}

func (b *bbsClient) desireProbe(guid, archive string, c *bbspb.CheckDefinition) {
	b.T.Helper()
	d := probeLRP(guid, archive)
	d.CheckDefinition = c
	b.must("/v1/desired_lrp/desire.r2", &bbspb.DesireLRPRequest{DesiredLrp: d})
}

func (b *bbsClient) removeLRP(guid string) {
	b.T.Helper()
	b.must("/v1/desired_lrp/remove", &bbspb.ProcessGUIDRequest{ProcessGuid: guid})
}

// becomesReady closes the port of an instance that is ready by it, and opens it
// again.
func (b *bbsClient) becomesReady(guid string) {
	b.T.Helper()
	before := b.runningLRPs(guid, 1)[0]
	b.inside(before, 8080, "/shut?port=9000")
	e2e.Eventually(b.T, time.Minute, func() string {
		if a := b.actuals(guid)[0]; a.State != "RUNNING" || a.GetRoutable() {
			return fmt.Sprint(a)
		}
		return ""
	})
	b.inside(before, 8080, "/open?port=9000")
	if after := b.runningLRPs(guid, 1)[0]; after.InstanceKey.InstanceGuid != before.InstanceKey.InstanceGuid || after.CrashCount != 0 {
		b.T.Errorf("got %v; want %v", after, before)
	}
	b.logHasAll(guid, "HEALTH: Readiness check unsuccessful: failed to make TCP connection to ")
}

// monitorTurnsBad desires an LRP whose monitor says no when it is asked again,
// after Diego's 30 s. It returns what to look at then.
func (b *bbsClient) monitorTurnsBad() (later func(*bbsClient)) {
	b.must("/v1/desired_lrp/desire.r2", &bbspb.DesireLRPRequest{DesiredLrp: &bbspb.DesiredLRP{
		ProcessGuid: "moody", Domain: "tests", RootFs: "preloaded:minifs", Instances: 1, MemoryMb: 64, LogGuid: "moody", LogSource: "L", MetricTags: tags("moody"),
		Action: shell("sleep 1000"), Monitor: shell("[ -e /tmp/seen ] && echo gone bad && exit 1; echo > /tmp/seen")}})
	b.runningLRPs("moody", 1)
	return func(b *bbsClient) {
		b.comesTo("moody", "Instance became unhealthy: gone bad")
		b.logHasAll("moody", "CELL: gone bad", "CELL: Container became unhealthy")
		b.removeLRP("moody")
	}
}
