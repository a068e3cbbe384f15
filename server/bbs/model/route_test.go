package model

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"cupola/server/bbs/bbspb"
)

func TestRoutes(t *testing.T) {
	for _, c := range []struct {
		text string
		want []Route
	}{
		{`[{"hostnames":["A.example.com","b.example.com/Path/x"],"port":8080,"protocol":"http2","options":{"loadbalancing":"round-robin"}}]`, []Route{
			{Host: "a.example.com", Port: 8080, Protocol: "http2", Options: map[string]any{"loadbalancing": "round-robin"}},
			{Host: "b.example.com", Path: "/Path/x", Port: 8080, Protocol: "http2", Options: map[string]any{"loadbalancing": "round-robin"}}}},
		{`[{"hostnames":["a.example.com"],"port":1,"isolation_segment":"red"}]`, []Route{{Host: "a.example.com", Port: 1, Protocol: "http1", Segment: "red"}}},
		{`[{"hostnames":["a.example.com/"],"port":1,"route_service_url":"https://service.example.com"}]`, []Route{{Host: "a.example.com", Port: 1, Protocol: "http1", ServiceURL: "https://service.example.com"}}},
		{`[{"hostnames":["a.example.com"],"port":0},{"hostnames":["a.example.com"],"port":70000},{"hostnames":["/x"],"port":1}]`, nil},
		{`{"hostnames":"no list"}`, nil},
		{`garbage`, nil},
	} {
		d := &bbspb.DesiredLRP{Routes: &bbspb.Routes{Routes: map[string][]byte{"cf-router": []byte(c.text), "diego-ssh": []byte("{}")}}}
		if diff := cmp.Diff(c.want, Routes(d)); diff != "" {
			t.Errorf("%s: %s", c.text, diff)
		}
	}
}

func TestInternalHosts(t *testing.T) {
	for text, want := range map[string][]string{
		`[{"hostname":"Back.apps.internal"},{"hostname":""},{"hostname":"b.apps.internal"}]`: {"back.apps.internal", "b.apps.internal"},
		`{"hostname":"no list"}`: nil, `garbage`: nil,
	} {
		d := &bbspb.DesiredLRP{Routes: &bbspb.Routes{Routes: map[string][]byte{"internal-router": []byte(text)}}}
		if diff := cmp.Diff(want, InternalHosts(d)); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
}

func TestTCPRoutes(t *testing.T) {
	for text, want := range map[string][]TCPRoute{
		`[{"router_group_guid":"g","external_port":1024,"container_port":8080},{"external_port":0,"container_port":1},{"external_port":1,"container_port":70000}]`: {{1024, 8080}},
		`{"external_port":1}`: nil, `[{"external_port":"1"}]`: nil,
	} {
		d := &bbspb.DesiredLRP{Routes: &bbspb.Routes{Routes: map[string][]byte{"tcp-router": []byte(text)}}}
		if diff := cmp.Diff(want, TCPRoutes(d)); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
}
