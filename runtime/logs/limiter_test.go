package logs

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestLimiter(t *testing.T) {
	type step struct {
		after time.Duration
		bytes int
		want  verdict
	}
	tests := []struct {
		name  string
		limit int64
		steps []step
	}{
		{"unlimited", unlimited, []step{{0, 1 << 20, pass}, {0, 1 << 20, pass}}},
		{"none", 0, []step{{0, 1, drop}, {time.Hour, 1, drop}}},
		{"burst, then silent for a second", 1000, []step{
			{0, 1000, pass}, {0, 1, announce}, {0, 1, drop}, {999 * time.Millisecond, 1, drop}, {time.Millisecond, 1000, pass}, {0, 1, announce}}},
		{"refills", 1000, []step{{0, 1000, pass}, {500 * time.Millisecond, 500, pass}, {100 * time.Millisecond, 101, announce}}},
		{"never more than a second's worth", 1000, []step{{time.Hour, 1001, announce}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			now := time.Now()
			l := NewLimiter(tt.limit)
			l.filled = now
			for i, s := range tt.steps {
				now = now.Add(s.after)
				if got := l.allow(s.bytes, now); got != s.want {
					t.Errorf("step %d: got %v; want %v", i, got, s.want)
				}
			}
		})
	}
}

func TestLimiterRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLimiter(unlimited)
		var got []uint64
		for range 8 {
			l.allow(1000, time.Now())
			got = append(got, l.Rate())
			time.Sleep(time.Second)
		}
		time.Sleep(time.Hour)
		got = append(got, l.Rate())
		want := []uint64{1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 0}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("rates (-want +got):\n%s", diff)
		}
	})
}
