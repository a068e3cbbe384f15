package bulkhead

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"
)

// After work, Go keeps about as much memory as the work needed: its collector runs again only when the heap has
// doubled, and it keeps a tenth of that in case of more. An idle daemon would hold that for hours.
const (
	// spareInterval is how often the use of memory is looked at.
	spareInterval = 15 * time.Second
	// busyBytes is how much a daemon at work allocates in that time, at least: what it was given it would need again.
	busyBytes = 16 << 20
	// spareBytes is how much must be to gain, at least, and spareShare of all that is held: to collect costs what is in use.
	spareBytes = 8 << 20
	spareShare = 4
	// spareEvery is how many intervals pass at least between two collections.
	spareEvery = 4
)

// memoryUse is what the process has of memory, in bytes.
type memoryUse struct {
	allocated uint64 // by Go since the start
	held      uint64 // that is in no file
	spare     uint64 // of it that is free, or garbage as far as Go knows
}

// spareMemory decides when memory is returned to the kernel.
type spareMemory struct {
	allocated uint64 // by the last look
	left      uint64 // the least that was held since memory was returned
	waits     int    // looks until it can be returned again
}

// ReturnMemory collects garbage and returns what is free to the kernel, now and then while the daemon has
// little to do, until ctx ends. Before, it calls release, which frees what parts keep for later; the first time it
// lets go of what the start read of the program.
func ReturnMemory(ctx context.Context, release func(context.Context) error, log *slog.Logger) error {
	ticker := time.NewTicker(spareInterval)
	defer ticker.Stop()
	s := &spareMemory{waits: 1}
	started := sync.OnceFunc(func() {
		if err := unmapProgram(); err != nil {
			log.InfoContext(ctx, "what the start read of the program stays mapped", "err", err)
		}
	})
	for {
		select {
		case <-ticker.C:
			s.look(readMemory, func() {
				started()
				if err := release(ctx); err != nil && ctx.Err() == nil {
					log.WarnContext(ctx, "memory was not released", "err", err)
				}
				debug.FreeOSMemory()
			})
		case <-ctx.Done():
			return nil
		}
	}
}

// look returns memory by free if it is worth it.
func (s *spareMemory) look(read func() memoryUse, free func()) {
	now := read()
	busy := now.allocated-s.allocated > busyBytes
	s.allocated, s.left = now.allocated, min(s.left, now.held)
	s.waits = max(0, s.waits-1)
	gain := max(now.spare, now.held-s.left) // parts may hold what Go does not know of
	if busy || s.waits > 0 || gain < max(spareBytes, now.held/spareShare) {
		return
	}
	free()
	s.left, s.waits = read().held, spareEvery
}

func readMemory() memoryUse {
	samples := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}, {Name: "/memory/classes/heap/free:bytes"}, {Name: "/memory/classes/heap/objects:bytes"}, {Name: "/gc/heap/live:bytes"}}
	metrics.Read(samples)
	at := func(n int) uint64 { return samples[n].Value.Uint64() }
	text, _ := os.ReadFile("/proc/self/statm")
	var size, resident, shared uint64 // in pages
	_, _ = fmt.Sscan(string(text), &size, &resident, &shared)
	return memoryUse{allocated: at(0), held: (resident - shared) * uint64(os.Getpagesize()), spare: at(1) + at(2) - min(at(2), at(3))}
}
