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

// collected is freed by the next collection.
type collected struct {
	_ *collected // with a pointer, it is freed alone
}

// adjustCollector has Go's collector run when minGarbage has come together, now and
// again after each collection. Near the memory limit it runs as often as it must.
func adjustCollector() {
	samples := []metrics.Sample{{Name: "/gc/gogc:percent"}, {Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/globals:bytes"}, {Name: "/gc/scan/stack:bytes"}}
	metrics.Read(samples)
	at := func(n int) uint64 { return samples[n].Value.Uint64() }
	if percent := garbagePercent(at(1) + at(2) + at(3)); uint64(percent) != at(0) {
		debug.SetGCPercent(percent)
	}
	runtime.AddCleanup(&collected{}, func(struct{}) { adjustCollector() }, struct{}{})
}

// garbagePercent is GOGC: which share of what is in use, in bytes, may be garbage
// before Go's collector runs. In steps, as each change stops all goroutines for a moment.
// Go lets at least 4 MB times GOGC come together.
func garbagePercent(inUse uint64) int {
	const step = 20
	return max(100, int(minGarbage*100/max(inUse, 4<<20))/step*step)
}
