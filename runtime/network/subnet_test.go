package network

import (
	"net/netip"
	"testing"

	"pgregory.net/rapid"
)

func use(prefix, link string, cupola bool, label string) Use {
	return Use{netip.MustParsePrefix(prefix), link, cupola, label}
}

func blocks(text ...string) (all []netip.Prefix) {
	for _, t := range text {
		all = append(all, netip.MustParsePrefix(t))
	}
	return all
}

func TestPick(t *testing.T) {
	kept := netip.MustParsePrefix("10.130.0.0/16")
	for _, c := range []struct {
		name  string
		want  Want
		uses  []Use
		got   string
		inWay int
	}{
		{"first", Want{}, nil, "10.1.0.0/16", 0},
		{"route", Want{}, []Use{use("10.1.7.0/24", "eth0", false, "")}, "10.2.0.0/16", 0},
		{"wider route", Want{}, []Use{use("10.0.0.0/8", "tun0", false, "")}, "172.16.0.0/16", 0},
		{"halves of the default route", Want{}, []Use{use("0.0.0.0/1", "tun0", false, ""), use("128.0.0.0/1", "tun0", false, "")}, "10.1.0.0/16", 0},
		{"another's container", Want{}, []Use{use("10.1.0.2/32", "c0123450", true, "")}, "10.2.0.0/16", 0},
		{"another's address", Want{}, []Use{use("10.1.0.1/32", "lo", true, "lo:cu-c012345")}, "10.2.0.0/16", 0},
		{"a former version's address", Want{}, []Use{use("10.1.0.1/32", "lo", true, "lo:cupola")}, "10.2.0.0/16", 0},
		{"own container", Want{}, []Use{use("10.1.0.2/32", "cabcdef0", true, "")}, "10.1.0.0/16", 0},
		{"own address", Want{}, []Use{use("10.1.0.1/32", "lo", true, "lo:cu-cabcdef")}, "10.1.0.0/16", 0},
		{"a stranger's link of our name", Want{}, []Use{use("10.1.0.2/32", "cabcdef0", false, "")}, "10.2.0.0/16", 0},
		{"kept", Want{Kept: kept}, nil, "10.130.0.0/16", 0},
		{"kept from a former version", Want{Kept: kept}, []Use{use("10.130.0.1/32", "lo", true, "lo:cupola")}, "10.130.0.0/16", 0},
		{"kept and taken", Want{Kept: kept}, []Use{use("10.130.0.1/32", "lo", true, "lo:cu-c012345")}, "10.1.0.0/16", 0},
		{"live and free", Want{Kept: kept, Live: true}, []Use{use("10.1.0.0/16", "eth0", false, "")}, "10.130.0.0/16", 0},
		{"live and in use", Want{Kept: kept, Live: true}, []Use{use("10.130.3.0/24", "eth0", false, ""), use("10.130.0.5/32", "cabcdef3", true, "")}, "10.130.0.0/16", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.want.LinkPrefix, c.want.Candidates = "cabcdef", blocks("10.1.0.0/16", "10.2.0.0/16", "172.16.0.0/16")
			got, inWay, err := c.want.Pick(c.uses)
			if err != nil || got.String() != c.got || len(inWay) != c.inWay {
				t.Errorf("got %s, %v in its way, %v; want %s and %d", got, inWay, err, c.got, c.inWay)
			}
		})
	}
	_, _, err := Want{LinkPrefix: "c", Candidates: blocks("10.1.0.0/16")}.Pick([]Use{use("10.0.0.0/8", "tun0", false, "")})
	if err == nil || err.Error() != "no addresses are free for containers: 10.1.0.0/16 overlaps 10.0.0.0/8 on tun0, and so it is with 0 other blocks" {
		t.Errorf("got %v", err)
	}
}

// TestPickIsFree has a subnet overlap nothing of others, unless containers are
// there.
func TestPickIsFree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		prefix := rapid.Custom(func(t *rapid.T) netip.Prefix {
			a := [4]byte{10, byte(rapid.IntRange(0, 5).Draw(t, "b")), rapid.Byte().Draw(t, "c"), 0}
			return netip.PrefixFrom(netip.AddrFrom4(a), rapid.IntRange(12, 32).Draw(t, "bits"))
		})
		var uses []Use
		for _, p := range rapid.SliceOfN(prefix, 0, 8).Draw(t, "uses") {
			uses = append(uses, Use{Prefix: p, Link: rapid.SampledFrom([]string{"eth0", "cup1", "c0123451"}).Draw(t, "link"), Cupola: rapid.Bool().Draw(t, "cupola")})
		}
		w := Want{LinkPrefix: "cup", Candidates: blocks("10.0.0.0/16", "10.1.0.0/16", "10.2.0.0/16", "10.3.0.0/16", "10.4.0.0/16", "10.5.0.0/16", "10.200.0.0/16")}
		got, inWay, err := w.Pick(uses)
		if err != nil || len(inWay) != 0 {
			t.Fatalf("got %v, %v", inWay, err)
		}
		for _, u := range uses {
			if u.Prefix.Overlaps(got) && (u.Link != "cup1" || !u.Cupola) {
				t.Errorf("%s overlaps %s", got, u)
			}
		}
	})
}
