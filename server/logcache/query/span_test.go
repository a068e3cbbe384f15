package query

import (
	"testing"
	"time"
)

func TestParseStep(t *testing.T) {
	for v, want := range map[string]time.Duration{
		"1": time.Second, "1.5": 1500 * time.Millisecond, "1e3": 1000 * time.Second, "15s": 15 * time.Second, "7ms": 7 * time.Millisecond,
		"1h30m": 90 * time.Minute, "1w2d": 9 * 24 * time.Hour, "1y": 365 * 24 * time.Hour,
	} {
		if got, err := parseStep(v); err != nil || got != want {
			t.Errorf("%q: got %v, %v; want %v", v, got, err, want)
		}
	}
	for _, v := range []string{"", "0", "0s", "-1", "-1m", "+1m", " 1m", "(1m)", "1m#", "1s1m", "1m+1m", "0x10", "1.5h", "1µs", "NaN", "Inf", "300y", "1e400", "x", `"1m"`} {
		if got, err := parseStep(v); err == nil {
			t.Errorf("%q: got %v; want an error", v, got)
		}
	}
}
