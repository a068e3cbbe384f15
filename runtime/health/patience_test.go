package health

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"cupola/runtime/lrp"

	"github.com/google/go-cmp/cmp"
)

// waits is what a container says that has a processor for one part of each n of its time, from one time after the start to another.
func waits(n int64, from, to time.Duration) func() time.Duration {
	began := time.Now()
	return func() time.Duration {
		at := min(max(time.Since(began), from), to)
		return (at - from) * time.Duration(n-1) / time.Duration(n)
	}
}

// answersAfter accepts connections, each after a time.
func answersAfter(d time.Duration) dialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if !sleep(ctx, d) {
			return nil, ctx.Err()
		}
		return between(0, time.Hour)(ctx, network, address)
	}
}

// Deadlines are as much longer as the container waited for a processor: what it needs at most is ten times the time, and what does
// not wait gets Diego's.
func TestAStarvedContainerHasMoreTime(t *testing.T) {
	port := lrp.Check{Type: lrp.CheckPort, Port: 8080, Interval: 2 * time.Second}
	const never = time.Hour
	const refusal = "failed to make TCP connection to 10.1.2.3:8080: dial tcp 10.1.2.3:8080: connect: connection refused"
	const late = "failed to make TCP connection to 10.1.2.3:8080: timed out after 1.00 seconds"
	tests := []struct {
		name   string
		spec   Spec
		waits  func() func() time.Duration
		dial   func() dialFunc
		events []string
	}{
		{"an idle container has Diego's time", Spec{Checks: live(port), StartTimeout: 3 * time.Second}, func() func() time.Duration { return waits(1, 0, never) }, func() dialFunc { return between(4*time.Second, never) },
			[]string{"3s never-healthy Instance never healthy after 3s: Timed out after 3s (11 attempts) waiting for startup check to succeed: " + refusal}},
		{"half of a processor, twice the time", Spec{Checks: live(port), StartTimeout: 3 * time.Second}, func() func() time.Duration { return waits(2, 0, never) }, func() dialFunc { return between(5*time.Second, 6*time.Second) },
			[]string{"5.13s healthy ", "5.13s ready ", "7.13s unhealthy Instance became unhealthy: Liveness check unsuccessful: " + refusal}},
		{"and no more", Spec{Checks: live(port), StartTimeout: 3 * time.Second}, func() func() time.Duration { return waits(2, 0, never) }, func() dialFunc { return between(6*time.Second, never) },
			[]string{"5.8125s never-healthy Instance never healthy after 5.813s: Timed out after 3s (37 attempts) waiting for startup check to succeed: " + refusal}},
		{"ten times the time at most", Spec{Checks: live(port), StartTimeout: 3 * time.Second}, func() func() time.Duration { return waits(1000, 0, never) }, func() dialFunc { return between(never, never) },
			[]string{"30s never-healthy Instance never healthy after 30s: Timed out after 3s (114 attempts) waiting for startup check to succeed: " + refusal}},
		{"starved for a while only", Spec{Checks: live(port), StartTimeout: 3 * time.Second}, func() func() time.Duration { return waits(1000, 0, time.Second) }, func() dialFunc { return between(3500*time.Millisecond, never) },
			[]string{"3.63s healthy ", "3.63s ready "}},
		{"a healthy one that answers late", Spec{Checks: live(port), Healthy: true}, func() func() time.Duration { return waits(10, 0, never) }, func() dialFunc { return answersAfter(2500 * time.Millisecond) },
			[]string{"0s healthy ", "0s ready "}},
		{"and one that has no reason to", Spec{Checks: live(port), Healthy: true}, func() func() time.Duration { return waits(1, 0, never) }, func() dialFunc { return answersAfter(2500 * time.Millisecond) },
			[]string{"0s healthy ", "0s ready ", "3s unhealthy Instance became unhealthy: Liveness check unsuccessful: " + late}},
		{"one that hangs is found", Spec{Checks: live(port), Healthy: true}, func() func() time.Duration { return waits(2, 0, never) }, func() dialFunc { return hang },
			[]string{"0s healthy ", "0s ready ", "15.9s unhealthy Instance became unhealthy: Liveness check unsuccessful: " + late}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tt.spec.Starved = tt.waits()
				got, _ := observe(tt.spec, tt.dial(), 40*time.Second)
				if diff := cmp.Diff(tt.events, got); diff != "" {
					t.Errorf("events (-want +got):\n%s", diff)
				}
			})
		})
	}
}
