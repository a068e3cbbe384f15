package bulkhead

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"
)

func TestGarbagePercent(t *testing.T) {
	const mb = 1 << 20
	for _, c := range []struct {
		inUse uint64
		want  int
	}{
		{0, 1200}, {4 * mb, 1200}, {16 * mb, 300}, {17 * mb, 280}, {40 * mb, 120}, {48 * mb, 100}, {500 * mb, 100},
	} {
		if got := garbagePercent(c.inUse); got != c.want {
			t.Errorf("with %d MB in use: got %d; want %d", c.inUse/mb, got, c.want)
		}
	}
}

// The collector runs at minGarbage, also when what is live grows and shrinks.
func TestCollector(t *testing.T) {
	defer debug.FreeOSMemory()
	goal := func() uint64 {
		s := []metrics.Sample{{Name: "/gc/heap/goal:bytes"}}
		metrics.Read(s)
		return s[0].Value.Uint64()
	}
	adjustCollector()
	for _, live := range []int{1, 100, 1} {
		held := make([]byte, live<<20)
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
			runtime.GC()
			least := max(uint64(minGarbage), uint64(live)<<21)
			if got := goal(); got >= least*9/10 && got < least+minGarbage {
				break
			} else if time.Now().After(deadline) {
				t.Fatalf("with %d MB live the collector runs at %d MB; want %d and a little", live, got>>20, least>>20)
			}
		}
		runtime.KeepAlive(held)
	}
}
