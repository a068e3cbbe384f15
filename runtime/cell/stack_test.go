package cell

import (
	"fmt"
	"runtime"
	"runtime/metrics"
	"testing"
	"testing/synctest"
)

// A container that runs holds little stack: its goroutines do not wait in functions with large frames.
func TestStackOfAnInstance(t *testing.T) {
	const count, most = 128, 40 << 10 // it takes 31 kB, and took 53 when records lay on it
	synctest.Test(t, func(t *testing.T) {
		d := boot(t, newMachine(t), t.TempDir())
		defer d.kill()
		before := stacks()
		for n := range count {
			spec := web()
			spec.GUID, spec.Index = fmt.Sprint("g", n), n
			d.Start(spec)
			synctest.Wait()
		}
		if n := len(d.Containers()); n != count {
			t.Fatalf("%d containers run; want %d", n, count)
		}
		if each := (stacks() - before) / count; each > most {
			t.Errorf("an instance holds %d bytes of stack; want at most %d", each, most)
		} else {
			t.Logf("an instance holds %d bytes of stack", each)
		}
	})
}

// stacks is how much the goroutines' stacks take when each is as small as it can be.
func stacks() int64 {
	for range 8 { // each halves a stack of which little is used
		runtime.GC()
	}
	sample := []metrics.Sample{{Name: "/memory/classes/heap/stacks:bytes"}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64())
}
