package director

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"cupola/runtime/lrp"
	"cupola/server/bosh/agent"
	"cupola/server/bosh/manifest"
)

func TestProbes(t *testing.T) {
	ports := []manifest.Port{{Name: "web", Internal: 8080}}
	for _, test := range []struct {
		probe manifest.Probe
		want  *agent.Probe
		err   string
	}{
		{manifest.Probe{Exec: []string{"curl me"}}, &agent.Probe{Exec: []string{"/bin/sh", "-c", "curl me"}}, ""},
		{manifest.Probe{TCPPort: "web", TCPHost: "elsewhere"}, &agent.Probe{Port: 8080}, ""},
		{manifest.Probe{GRPCPort: 9, GRPCName: "db"}, &agent.Probe{Port: 9, GRPC: true, Service: "db"}, ""},
		{manifest.Probe{HTTPGet: &manifest.HTTPGet{Path: "a", Port: "443", Host: "me", Scheme: "https", Headers: []map[string]any{{"name": "X-Number", "value": 1}}}},
			&agent.Probe{Port: 443, Path: "/a", TLS: true, Host: "me", Headers: []lrp.Header{{Name: "X-Number", Value: "1"}}}, ""},
		{manifest.Probe{HTTPGet: &manifest.HTTPGet{Port: "x"}}, nil, `the job has no port "x"`},
		{manifest.Probe{}, nil, "the probe does nothing; give one of exec, httpGet, tcpSocket and grpc"},
	} {
		got, err := probeOf(&test.probe, ports)
		if test.err != "" {
			if err == nil || err.Error() != test.err {
				t.Errorf("%+v: got %v; want %s", test.probe, err, test.err)
			}
			continue
		}
		if diff := cmp.Diff(test.want, got); diff != "" || err != nil {
			t.Errorf("%+v: %v %s", test.probe, err, diff)
		}
	}
}
