package bulkhead

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// minGarbage is how much garbage there is, at least, when Go's collector runs. By itself it
// runs when the heap has doubled. The daemon's is small, so under load that would be often,
// and each time requests wait for a processor. ReturnMemory gives the memory back
// afterwards.
const minGarbage = 48 << 20

// collector decides when Go's collector runs: when minGarbage has come together.
// Near the memory limit, it runs as often as it must.
type collector struct{ percent int }

// collected is freed by the next collection.
type collected struct {
	_ *collected // with a pointer, it is freed alone
}

// adjust sets the share of the heap that may be garbage, now and after each
// collection.
func (c *collector) adjust() {
	inUse := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/globals:bytes"}, {Name: "/gc/scan/stack:bytes"}}
	metrics.Read(inUse)
	if percent := garbagePercent(inUse[0].Value.Uint64() + inUse[1].Value.Uint64() + inUse[2].Value.Uint64()); percent != c.percent {
		c.percent = percent
		debug.SetGCPercent(percent)
	}
	runtime.AddCleanup(&collected{}, (*collector).adjust, c)
}

// garbagePercent is GOGC: which share of what is in use, in bytes, may be garbage
// before Go's collector runs. In steps, as each change stops all goroutines for a moment.
// Go lets at least 4 MB times GOGC come together.
func garbagePercent(inUse uint64) int {
	const step = 20
	return max(100, int(minGarbage*100/max(inUse, 4<<20))/step*step)
}
