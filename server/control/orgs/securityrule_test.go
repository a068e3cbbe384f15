package orgs

import (
	"fmt"
	"strings"
	"testing"
)

func TestSecurityRules(t *testing.T) {
	for _, c := range []struct{ rule, want string }{
		{`{"protocol": "tcp", "destination": "10.0.0.1", "ports": "80,443"}`, ""},
		{`{"protocol": "udp", "destination": "10.0.0.1-10.0.0.9,8.8.8.8/32", "ports": "1-65535", "log": true, "description": "x"}`, ""},
		{`{"protocol": "icmp", "destination": "0.0.0.0/0", "type": -1, "code": 0}`, ""},
		{`{"protocol": "all", "destination": "0.0.0.0/0"}`, ""},
		{`7`, "must be an object"},
		{`{"protocol": "x", "destination": "1.1.1.1"}`, "protocol must be 'tcp', 'udp', 'icmp', 'icmpv6' or 'all'"},
		{`{"protocol": "all", "destination": "1.1.1.1", "ports": "1"}`, "ports are not allowed for protocols of type all"},
		{`{"protocol": "all", "destination": "1.1.1.1", "port": "1"}`, `unknown field(s): ["port"]`},
		{`{"protocol": "all"}`, "nil destination; destination must be a comma-delimited list of valid CIDRs, IP addresses, or IP address ranges"},
		{`{"protocol": "all", "destination": 7}`, "destination must be a string"},
		{`{"protocol": "all", "destination": "1.1.1.1 "}`, "destination must not contain whitespace"},
		{`{"protocol": "all", "destination": "1.1.1"}`, "destination must contain valid CIDR(s), IP address(es), or IP address range(s)"},
		{`{"protocol": "all", "destination": "1.1.1.0/33"}`, "destination must contain valid CIDR(s), IP address(es), or IP address range(s)"},
		{`{"protocol": "all", "destination": "1.1.1.1-1.1.1.1-2"}`, "destination must contain valid CIDR(s), IP address(es), or IP address range(s)"},
		{`{"protocol": "all", "destination": "010.1.1.1"}`, "destination octets cannot contain leading zeros"},
		{`{"protocol": "all", "destination": "2.2.2.2-1.1.1.1"}`, "beginning of IP address range is numerically greater than the end of its range (range endpoints are inverted)"},
		{`{"protocol": "all", "destination": "2.2.2.2-x"}`, "destination IP address range is invalid"},
		{`{"protocol": "tcp", "destination": "1.1.1.1", "ports": "0"}`, "ports must be a valid single port, comma separated list of ports, or range or ports, formatted as a string"},
		{`{"protocol": "tcp", "destination": "1.1.1.1", "ports": "9-8"}`, "ports must be a valid single port, comma separated list of ports, or range or ports, formatted as a string"},
		{`{"protocol": "icmp", "destination": "1.1.1.1", "type": 256, "code": 0}`, "type must be an integer between -1 and 255 (inclusive)"},
		{`{"protocol": "all", "destination": "1.1.1.1", "log": 1}`, "log must be a boolean"},
	} {
		_, faults := parseRules([]byte("[" + c.rule + "]"))
		want := ""
		if c.want != "" {
			want = "Rules[0]: " + c.want
		}
		if got := strings.Join(faults, ", "); got != want {
			t.Errorf("%s: got %q; want %q", c.rule, got, want)
		}
	}
	if _, faults := parseRules([]byte(`{}`)); fmt.Sprint(faults) != "[Rules must be an array]" {
		t.Errorf("got %v", faults)
	}
}

func FuzzParseRules(f *testing.F) {
	f.Add([]byte(`[{"protocol": "icmp", "destination": "0.0.0.0/0,1.1.1.1-2.2.2.2", "type": -1, "code": 0, "ports": "1-2"}]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		rules, faults := parseRules(data)
		if len(faults) > 0 {
			return
		}
		for _, r := range rules {
			if r.Protocol == "" || r.Destination == "" || r.Protocol == "tcp" && r.Ports == "" || r.Protocol == "icmp" && (r.Type == nil || r.Code == nil) {
				t.Errorf("%s was taken as %+v", data, r)
			}
		}
	})
}
