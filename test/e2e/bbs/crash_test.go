package bbs

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"cupola/server/bbs/bbspb"
	"cupola/test/e2e"
)

// lrpCase is an LRP and what it comes to.
type lrpCase struct {
	lrp    *bbspb.DesiredLRP
	reason string // of its first crash, as an expression; "" for one that runs
	logs   []string
}

// lrpsCrash wants Diego's reasons of instances that go down, or never come up,
// and those to run that should.
func (b *bbsClient) lrpsCrash() {
	probe := probeTar(b.T.(*testing.T))
	forever := shell("sleep 1000")
	const never = `Instance never healthy after [\d.]+s: Timed out after 1s \(\d+ attempts\) waiting for startup check to succeed: `
	// Each attempt has a second, too, which a busy machine may use up; one of a monitor action is cancelled then.
	const late = `timed out after 1\.00 seconds`
	cases := map[string]lrpCase{
		"setup":     {lrp: &bbspb.DesiredLRP{Setup: serial(shell("exit 0"), said("SETUP", "exit 3")), Action: forever}, reason: "SETUP: Exited with status 3"},
		"long":      {lrp: &bbspb.DesiredLRP{Action: said(strings.Repeat("x", 1100), "exit 3")}, reason: `x{1000}x{13}\(truncated\)`},
		"no-setup":  {lrp: &bbspb.DesiredLRP{Setup: &bbspb.Action{Download: &bbspb.Download{From: probe + "x", To: ".", User: "vcap"}}, Action: forever}, reason: "Downloading failed"},
		"good-end":  {lrp: &bbspb.DesiredLRP{Action: codependent(shell("exit 0"), forever)}, reason: "Codependent step exited"},
		"late":      {lrp: &bbspb.DesiredLRP{Action: within(1500, forever)}, reason: `exceeded 1\.5s timeout`},
		"sidecar":   {lrp: &bbspb.DesiredLRP{Action: forever, Sidecars: []*bbspb.Sidecar{{Action: said("SIDE", "sleep 1; exit 4")}}}, reason: "SIDE: Exited with status 4", logs: []string{"SIDE: Exit status 4"}},
		"tcp":       {lrp: checked(forever, &bbspb.Check{Tcp: &bbspb.TCPCheck{Port: 9999}}), reason: never + `failed to make TCP connection to [\d.]+:9999: (dial tcp [\d.]+:9999: connect: connection refused|` + late + `)`, logs: []string{"HEALTH: ", "CELL: Failed after "}},
		"http":      {lrp: checked(forever, &bbspb.Check{Http: &bbspb.HTTPCheck{Port: 9999, Path: "/ping"}}), reason: never + `failed to make HTTP request to '/ping' on port 9999: (connection refused|` + late + `)`},
		"unmonitor": {lrp: &bbspb.DesiredLRP{Action: forever, Monitor: shell("echo not yet; exit 1"), StartTimeoutMs: 1000}, reason: `Instance never healthy after [\d.]+s: (not yet|cancelled)`},
		"monitor":   {lrp: &bbspb.DesiredLRP{Action: shell("sleep 1; touch /tmp/up; sleep 1000"), Monitor: within(5000, parallel(shell("ls /tmp/up")))}, logs: []string{"CELL: Starting health monitoring of container", "CELL: Container became healthy"}},
		"daemon":    {lrp: &bbspb.DesiredLRP{Action: shell("exit 0"), Monitor: shell("exit 0")}, logs: []string{"L: Exit status 0", "CELL: Container became healthy"}},
		"no-layer": {lrp: &bbspb.DesiredLRP{Action: forever, ImageLayers: []*bbspb.ImageLayer{{Name: "base", Url: probe + "x", DestinationPath: "/x", LayerType: bbspb.LayerType_LAYER_TYPE_SHARED,
			MediaType: bbspb.MediaType_MEDIA_TYPE_TGZ}}}, reason: "failed to download cached artifacts", logs: []string{"L: Downloading base failed"}},
	}
	for guid, c := range cases {
		d := c.lrp
		d.ProcessGuid, d.Domain, d.RootFs, d.Instances, d.MemoryMb, d.DiskMb = "c-"+guid, "tests", "preloaded:minifs", 1, 64, 64
		d.LogGuid, d.LogSource, d.MetricTags = "c-"+guid, "L", tags("c-"+guid)
		b.must("/v1/desired_lrp/desire.r2", &bbspb.DesireLRPRequest{DesiredLrp: d})
	}
	for guid, c := range cases {
		b.comesTo("c-"+guid, c.reason)
		b.logHasAll("c-"+guid, c.logs...)
		b.removeLRP("c-" + guid)
	}
}

// checked is an LRP that has a second to pass a check.
func checked(a *bbspb.Action, c *bbspb.Check) *bbspb.DesiredLRP {
	return &bbspb.DesiredLRP{Action: a, StartTimeoutMs: 1000, CheckDefinition: &bbspb.CheckDefinition{Checks: []*bbspb.Check{c}, LogSource: "HEALTH"}}
}

// comesTo waits until the instance of an LRP has crashed for a reason, or runs.
func (b *bbsClient) comesTo(guid, reason string) {
	b.T.Helper()
	want := regexp.MustCompile("^" + reason + "$")
	e2e.Eventually(b.T, time.Minute, func() string {
		a := b.actuals(guid)[0]
		if a.CrashCount == 0 && (reason != "" || a.State != "RUNNING") {
			return fmt.Sprint(a)
		}
		if !want.MatchString(a.CrashReason) {
			b.T.Errorf("%s: got %q; want %q", guid, a.CrashReason, reason)
		}
		return ""
	})
}
