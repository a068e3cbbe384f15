package network

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

var sameAddr = cmpopts.EquateComparable(netip.Addr{})

func ranges(t testing.TB, s string) []Range {
	t.Helper()
	if s == "" {
		return nil
	}
	all, err := ParseDestination(s)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestParseDestination(t *testing.T) {
	addr := netip.MustParseAddr
	for s, want := range map[string][]Range{
		"10.0.0.1":                    {{addr("10.0.0.1"), addr("10.0.0.1")}},
		"10.1.2.3/8":                  {{addr("10.0.0.0"), addr("10.255.255.255")}},
		"0.0.0.0/0":                   {{addr("0.0.0.0"), addr("255.255.255.255")}},
		"1.1.1.1/32":                  {{addr("1.1.1.1"), addr("1.1.1.1")}},
		"0.0.0.0-9.255.255.255":       {{addr("0.0.0.0"), addr("9.255.255.255")}},
		"1.1.1.1, 2.2.2.0 - 2.2.2.9 ": {{addr("1.1.1.1"), addr("1.1.1.1")}, {addr("2.2.2.0"), addr("2.2.2.9")}},
	} {
		got, err := ParseDestination(s)
		if diff := cmp.Diff(want, got, sameAddr); err != nil || diff != "" {
			t.Errorf("%q: %v\n%s", s, err, diff)
		}
	}
	for _, s := range []string{"", "x", "1.2.3", "::1", "fe80::/10", "2.2.2.2-1.1.1.1", "1.1.1.1-", "1.1.1.1-::1", "1.1.1.1,", "1.1.1.0/33", "::ffff:1.1.1.1"} {
		if got, err := ParseDestination(s); err == nil {
			t.Errorf("%q: got %v; want an error", s, got)
		}
	}
}

func TestPrefixes(t *testing.T) {
	for s, want := range map[string]string{
		"10.0.0.1":                "10.0.0.1/32",
		"10.1.2.3/8":              "10.0.0.0/8",
		"0.0.0.0-255.255.255.255": "0.0.0.0/0",
		"0.0.0.0-9.255.255.255":   "0.0.0.0/5 8.0.0.0/7",
		"10.0.0.1-10.0.0.6":       "10.0.0.1/32 10.0.0.2/31 10.0.0.4/31 10.0.0.6/32",
		"255.255.255.254/31":      "255.255.255.254/31",
	} {
		var got []string
		for _, p := range ranges(t, s)[0].Prefixes() {
			got = append(got, p.String())
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: got %s; want %s", s, got, want)
		}
	}
}

func FuzzParseDestination(f *testing.F) {
	for _, s := range []string{"10.0.0.0/8", "1.1.1.1-2.2.2.2", "1.1.1.1,3.3.3.3/31"} {
		f.Add(s)
	}
	subnet := rangeOf(netip.MustParsePrefix("10.251.0.0/16"))
	f.Fuzz(func(t *testing.T, s string) {
		all, err := ParseDestination(s)
		if err != nil {
			return
		}
		for _, r := range all {
			blocks := r.Prefixes()
			if rangeOf(blocks[0]).From != r.From || rangeOf(blocks[len(blocks)-1]).To != r.To || len(blocks) > 62 {
				t.Errorf("%q: %v is the blocks %v", s, r, blocks)
			}
		}
		for _, r := range within(all, subnet) {
			if !r.From.IsValid() || r.To.Less(r.From) {
				t.Errorf("%q: got range %v", s, r)
			}
		}
	})
}

func TestParsePorts(t *testing.T) {
	for s, want := range map[string][]PortRange{
		"443": {{443, 443}}, "80,443": {{80, 80}, {443, 443}}, "8080-8090": {{8080, 8090}}, "1-65535": {{1, 65535}}, " 1 - 2 , 5": {{1, 2}, {5, 5}},
	} {
		got, err := ParsePorts(s)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%q: %v\n%s", s, err, diff)
		}
	}
	for _, s := range []string{"", "0", "65536", "2-1", "a", "1-", "-1", "1,"} {
		if got, err := ParsePorts(s); err == nil {
			t.Errorf("%q: got %v; want an error", s, got)
		}
	}
}

func FuzzParsePorts(f *testing.F) {
	f.Add("80,443-445")
	f.Fuzz(func(t *testing.T, s string) {
		all, err := ParsePorts(s)
		if err == nil && len(all) != strings.Count(s, ",")+1 {
			t.Errorf("%q: got %v", s, all)
		}
	})
}

func TestWithin(t *testing.T) {
	subnet := rangeOf(netip.MustParsePrefix("10.251.0.0/16"))
	for _, c := range []struct{ in, want string }{
		{"8.8.8.8", "8.8.8.8"},
		{"0.0.0.0/0", "0.0.0.0-10.250.255.255,10.252.0.0-255.255.255.255"},
		{"10.0.0.0/8", "10.0.0.0-10.250.255.255,10.252.0.0-10.255.255.255"},
		{"10.251.0.5", "10.251.0.5"},
		{"10.251.0.0/16", "10.251.0.0/16"},
		{"10.250.0.0-10.251.0.5", "10.250.0.0-10.250.255.255"},
		{"3.0.0.0/8,1.0.0.0/8,2.0.0.0/8", "1.0.0.0-3.255.255.255"},
		{"1.0.0.0/8,1.2.3.4", "1.0.0.0/8"},
	} {
		if diff := cmp.Diff(ranges(t, c.want), within(ranges(t, c.in), subnet), sameAddr); diff != "" {
			t.Errorf("%s: %s", c.in, diff)
		}
	}
}

func TestMergePorts(t *testing.T) {
	got := mergePorts([]PortRange{{90, 65535}, {80, 80}, {81, 82}, {84, 84}, {81, 81}})
	want := []PortRange{{80, 82}, {84, 84}, {90, 65535}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestParseResolvers(t *testing.T) {
	const conf = "# c\nnameserver 127.0.0.53\nnameserver 10.0.0.2 # x\nnameserver fe80::1\nnameserver\nsearch a b\nnameserver 8.8.8.8\n"
	want := []netip.Addr{netip.MustParseAddr("10.0.0.2"), netip.MustParseAddr("8.8.8.8")}
	if diff := cmp.Diff(want, parseResolvers(conf), sameAddr); diff != "" {
		t.Error(diff)
	}
}

func FuzzParseResolvers(f *testing.F) {
	f.Add("nameserver 1.1.1.1\n")
	f.Fuzz(func(_ *testing.T, s string) { parseResolvers(s) })
}
