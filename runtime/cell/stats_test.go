package cell

import (
	"math"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"cupola/runtime/lrp"
)

func TestUsage(t *testing.T) {
	began := time.Unix(1000, 0)
	u := usage{at: began}
	for _, look := range []struct {
		at, cpu time.Duration
		want    float64
	}{
		{time.Second, 500 * time.Millisecond, 50},
		{1100 * time.Millisecond, 600 * time.Millisecond, 50}, // too soon
		{2 * time.Second, 2500 * time.Millisecond, 200},
		{3 * time.Second, 2500 * time.Millisecond, 0},
	} {
		if got := u.sample(began.Add(look.at), look.cpu); got != look.want {
			t.Errorf("after %s: got %v %%; want %v %%", look.at, got, look.want)
		}
	}
}

func TestEntitlement(t *testing.T) {
	c := &Cell{cfg: Config{Presence: lrp.Cell{MemoryMB: 16384}}}
	cores := float64(runtime.NumCPU())
	for weight, want := range map[int]float64{100: cores / 2, 12: cores * 12 / 200, 0: cores / 200} {
		if got := c.entitledCores(weight); math.Abs(got-want) > 1e-9 {
			t.Errorf("weight %d: got %v cores; want %v", weight, got, want)
		}
	}
	i := newInstance(c, lrp.Container{RunInfo: lrp.RunInfo{CPUWeight: 100}})
	i.rec.StartedAt = time.Unix(1000, 0)
	if got := i.cpuStats(time.Unix(1002, 0), time.Second).Entitlement; math.Abs(got-0.5/(cores/2)) > 1e-9 {
		t.Errorf("got entitlement %v; want half a core of %v", got, cores/2)
	}
}

// A container is not measured again for each who asks.
func TestStatsAreMeasuredOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := boot(t, newMachine(t), t.TempDir())
		defer d.kill()
		d.Start(web())
		synctest.Wait()
		for _, look := range []struct {
			after  time.Duration
			memory uint64
			uptime time.Duration
		}{{0, 1, 0}, {recentFor / 2, 1, recentFor / 2}, {recentFor / 2, 2, recentFor}, {time.Millisecond, 2, recentFor + time.Millisecond}} {
			time.Sleep(look.after)
			s, ok := d.Stats("g1")
			if !ok || s.MemoryBytes != look.memory<<20 || s.Uptime != look.uptime {
				t.Errorf("got %+v; want %d MB after %s", s, look.memory, look.uptime)
			}
		}
	})
}
