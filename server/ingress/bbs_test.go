package ingress

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cupola/runtime/lrp"
	"cupola/server/bbs/bbspb"
	"cupola/server/bbs/bbsrows"
	"cupola/server/bbs/model"
	"cupola/server/dns"
	"cupola/server/router"
	"cupola/store/cf"
)

// TestOtherRoutesOfDesired holds where tcp-router and internal-router routes lead
// (route-emitter: routingtable/{endpoint,registry_message}.go).
func TestOtherRoutesOfDesired(t *testing.T) {
	desired := func(guid, tcp, internal string) *bbsrows.Desired {
		d := &bbspb.DesiredLRP{ProcessGuid: guid, LogGuid: "log-" + guid, Routes: &bbspb.Routes{Routes: map[string][]byte{"tcp-router": []byte(tcp), "internal-router": []byte(internal)}}}
		return &bbsrows.Desired{Message: d, LRP: model.Desired(d)}
	}
	running := func(guid string, index int, address string) *lrp.Actual {
		return &lrp.Actual{Key: lrp.Key{ProcessGUID: guid, Index: index}, InstanceGUID: guid + "-i", State: lrp.Running, Ready: true, Address: address}
	}
	unready := running("p", 2, "10.0.0.4")
	unready.Ready = false
	in := rows{
		domains: []*cf.Domain{{Resource: cf.Resource{GUID: "i"}, Name: "apps.internal", Internal: true}, {Resource: cf.Resource{GUID: "t"}, Name: "tcp.test"}},
		routes: []*cf.Route{{Host: "app", DomainGUID: "i", Destinations: []cf.Destination{{AppGUID: "a"}}},
			{Port: 1025, DomainGUID: "t", Destinations: []cf.Destination{{AppGUID: "a"}}}},
		instances: []*lrp.Actual{running("p", 0, "10.0.0.2"), running("q", 3, "10.0.0.3"), unready},
		desired: []*bbsrows.Desired{
			desired("p", `[{"external_port":1024,"container_port":9000},{"external_port":1025,"container_port":9000}]`, `[{"hostname":"both.apps.internal"},{"hostname":"app.apps.internal"},{"hostname":"www.example.com"}]`),
			desired("q", `[{"external_port":1024,"container_port":9001}]`, `[{"hostname":"both.apps.internal"}]`),
		},
	}
	var ports []router.Route
	for _, r := range in.table().Routes {
		if r.Port != 0 {
			ports = append(ports, r)
		}
	}
	want := []router.Route{{Port: 1025, Host: "tcp.test", AppGUID: "a"}, {Port: 1024, AppGUID: "log-p", Endpoints: []router.Endpoint{
		{Address: "10.0.0.2:9000", Protocol: "tcp", AppGUID: "log-p", ProcessGUID: "p", InstanceGUID: "p-i"}}}}
	if diff := cmp.Diff(want, ports); diff != "" {
		t.Error(diff)
	}
	hosts := map[string][]dns.Host{"both.apps.internal": {{Address: netip.MustParseAddr("10.0.0.2")}, {Address: netip.MustParseAddr("10.0.0.3"), Index: 3}}}
	if diff := cmp.Diff(hosts, in.names(in.internalNames()).Hosts, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
		t.Error(diff)
	}
}
