// Command bbs measures the BBS API of a daemon over TLS, with a few clients at
// once, each call as a ratio to the ping of the same run.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strconv"
	"time"

	"google.golang.org/protobuf/proto"

	"cupola/bench/daemon"
	"cupola/bench/report"
	"cupola/runtime/contract"
	"cupola/server/bbs/bbspb"
)

func main() {
	binary := flag.String("cupola", "bin/cupola", "the built cupola")
	count := flag.Int("n", 2000, "how many calls of each kind, and LRPs in the lists")
	clients := flag.Int("c", 8, "how many clients at once")
	flag.Parse()
	report.Main(2*time.Minute, func(ctx context.Context) error { return measure(ctx, *binary, *count, *clients) })
}

// diego is what Diego's BBS took on Postgres, 2,000 calls by 8 clients, on a
// machine of 2 cores: calls a second, or for a list milliseconds.
var diego = struct{ ping, desire, actuals, desired, listActuals, listInfos float64 }{7765, 1220, 2928, 2610, 26, 29}

func measure(ctx context.Context, binary string, count, clients int) error {
	return daemon.Run(binary, func(d *daemon.Daemon) error {
		c, err := newClient(ctx, d)
		if err != nil {
			return err
		}
		r := rounds{client: c, count: count, clients: clients, table: report.NewTable("call", "calls a second", "p50, ms", "p95, ms", "of ping", "Diego's, of its ping")}
		if err := r.run(ctx); err != nil {
			return err
		}
		fmt.Printf("%d calls of each kind by %d clients; the lists one by one, of %d each:\n\n", count, clients, count)
		r.table.Print(os.Stdout)
		return nil
	}, "--bbs", "127.0.0.1:0")
}

// rounds are the measurements of one run.
type rounds struct {
	*client
	count, clients int
	table          *report.Table
	ping           float64 // calls a second
	pingTime       time.Duration
}

func (r *rounds) run(ctx context.Context) error {
	guid := func(i int) string { return "bench-" + strconv.Itoa(i) }
	if err := r.calls(ctx, "Ping", diego.ping, func(int) (string, proto.Message) { return "/v1/ping", &bbspb.Empty{} }); err != nil {
		return err
	}
	for _, one := range []struct {
		what  string
		diego float64
		call  func(i int) (string, proto.Message)
	}{
		{"DesireLRP, no instances", diego.desire, func(i int) (string, proto.Message) {
			return "/v1/desired_lrp/desire.r2", &bbspb.DesireLRPRequest{DesiredLrp: lrp(guid(i))}
		}},
		{"ActualLRPs of a process GUID", diego.actuals, func(i int) (string, proto.Message) {
			return "/v1/actual_lrps/list", &bbspb.ActualLRPsRequest{ProcessGuid: guid(i)}
		}},
		{"DesiredLRPByProcessGuid", diego.desired, func(i int) (string, proto.Message) {
			return "/v1/desired_lrps/get_by_process_guid.r3", &bbspb.ProcessGUIDRequest{ProcessGuid: guid(i)}
		}},
	} {
		if err := r.calls(ctx, one.what, one.diego, one.call); err != nil {
			return err
		}
	}
	// Instances that find no cell: a machine holds no 2,000.
	for i := range r.count {
		one := int32(1)
		if err := r.call(ctx, "/v1/desired_lrp/update", &bbspb.UpdateDesiredLRPRequest{ProcessGuid: guid(i), Update: &bbspb.DesiredLRPUpdate{Instances: &one}}, &bbspb.LifecycleResponse{}); err != nil {
			return err
		}
	}
	if err := r.awaitPlacementErrors(ctx); err != nil {
		return err
	}
	if err := r.list(ctx, "list of ActualLRPs", diego.listActuals, "/v1/actual_lrps/list", &bbspb.ActualLRPsResponse{}); err != nil {
		return err
	}
	return r.list(ctx, "list of SchedulingInfos", diego.listInfos, "/v1/desired_lrp_scheduling_infos/list", &bbspb.DesiredLRPSchedulingInfosResponse{})
}

// lrp is a DesiredLRP of the size that Cloud Controller's are, on a root
// filesystem that no cell has.
func lrp(guid string) *bbspb.DesiredLRP {
	d := &bbspb.DesiredLRP{ProcessGuid: guid, Domain: "bench", RootFs: "preloaded:none", MemoryMb: 256, DiskMb: 1024, Ports: []uint32{8080}, LogGuid: guid, LogSource: "APP",
		Action: &bbspb.Action{Codependent: &bbspb.Actions{Actions: []*bbspb.Action{{Run: &bbspb.Run{Path: contract.Launcher, Args: []string{"app", "", ""}, User: contract.VcapName}}}}},
		Routes: &bbspb.Routes{Routes: map[string][]byte{"cf-router": []byte(`[{"hostnames":["` + guid + `.example.com"],"port":8080}]`)}},
		EgressRules: []*bbspb.SecurityGroupRule{{Protocol: "tcp", Destinations: []string{"0.0.0.0/0"}, Ports: []uint32{53}},
			{Protocol: "tcp", Destinations: []string{"0.0.0.0-9.255.255.255"}, PortRange: &bbspb.PortRange{Start: 1, End: 65535}}},
		MetricTags: map[string]*bbspb.MetricTagValue{"source_id": {Static: guid}}}
	for i := range 20 {
		d.Env = append(d.Env, &bbspb.Env{Name: "VARIABLE_" + strconv.Itoa(i), Value: "the value of a variable"})
	}
	return d
}
