package container

import (
	"encoding/binary"
	"strings"
	"testing"
)

func TestParseStat(t *testing.T) {
	const short = "42 (a ) b (c) S 1 42 42 0 -1 4194560 100 0 0 0 1 2 0 0 20 0 1 0 98765 1000 50 18446744073709551615"
	dead := strings.Replace(short, "S", "Z", 1) + strings.Repeat(" 0", 26) + " 1792"
	tests := map[string]stat{short: {parent: 1, session: 42, ticks: 98765}, dead: {zombie: true, parent: 1, session: 42, ticks: 98765, status: 7 << 8}}
	for line, want := range tests {
		if got, err := parseStat([]byte(line)); err != nil || got != want {
			t.Errorf("%s: got %+v, %v; want %+v", line, got, err, want)
		}
	}
	for _, bad := range []string{"", "42 (x", "42 (x) S 1 2"} {
		if got, err := parseStat([]byte(bad)); err == nil {
			t.Errorf("%q: got %+v; want an error", bad, got)
		}
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add([]byte("42 (a) S 1 42 42 0 -1 4194560 100 0 0 0 1 2 0 0 20 0 1 0 98765 1"))
	f.Fuzz(func(_ *testing.T, data []byte) { _, _ = parseStat(data) })
}

func FuzzParseExit(f *testing.F) {
	exit := make([]byte, eventData+16)
	binary.NativeEndian.PutUint32(exit[eventAt:], exitEvent)
	f.Add(exit)
	f.Fuzz(func(_ *testing.T, data []byte) { parseExit(data) })
}

func TestParseKey(t *testing.T) {
	const file = "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n"
	for key, want := range map[string]uint64{"oom_kill": 3, "under_oom": 0, "missing": 0, "oom": 0} {
		if got := parseKey([]byte(file), key); got != want {
			t.Errorf("%s: got %d; want %d", key, got, want)
		}
	}
}

func FuzzParseKey(f *testing.F) {
	f.Add([]byte("oom_kill 3\n"), "oom_kill")
	f.Fuzz(func(_ *testing.T, data []byte, key string) { parseKey(data, key) })
}

func TestValidID(t *testing.T) {
	for id, want := range map[string]bool{
		"": false, ".": false, "..": false, "a/b": false, "a b": false, "é": false,
		"a": true, "0e2f-1_x.y+z": true, "..a": true,
	} {
		if got := validID(id); got != want {
			t.Errorf("%q: got %v; want %v", id, got, want)
		}
	}
}

func TestHostname(t *testing.T) {
	long := "0123456789012345678901234567890123456789012345678901234567890123"
	if got := hostname(Spec{ID: "id"}); got != "id" {
		t.Errorf("got %q; want id", got)
	}
	if got := hostname(Spec{Hostname: long}); got != long[len(long)-49:] {
		t.Errorf("got %q; want the last 49 characters", got)
	}
}

func TestWeightOf(t *testing.T) {
	for shares, want := range map[uint64]uint64{0: 1, 2: 1, 10: 1, 30: 3, 512: 50, 1024: 100, 4096: 400, 1 << 18: 10000} {
		if got := weightOf(shares); got != want {
			t.Errorf("%d shares: got weight %d; want %d", shares, got, want)
		}
	}
}
