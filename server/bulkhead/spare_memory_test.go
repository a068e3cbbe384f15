package bulkhead

import (
	"runtime"
	"runtime/debug"
	"testing"
)

// Memory is returned when little is allocated, when it is worth it, and not twice in a minute.
func TestSpareMemory(t *testing.T) {
	const mb = 1 << 20
	s := &spareMemory{waits: 1}
	for i, c := range []struct {
		allocated, held, spare uint64 // since the look before; MB
		left                   uint64 // after memory is returned; MB; 0: it is not
	}{
		{500, 200, 100, 0}, // it works
		{15, 200, 0, 60},   // what is held beside Go
		{1, 200, 0, 0},     // just now
		{1, 200, 0, 0},
		{1, 200, 0, 0},
		{1, 67, 7, 0}, // not worth it
		{1, 70, 17, 0},
		{1, 80, 20, 50},
		{500, 400, 0, 0}, {500, 400, 0, 0}, {500, 400, 0, 0}, {500, 400, 0, 0},
		{0, 40, 0, 0},  // less than ever
		{0, 51, 0, 0},  // not a quarter
		{0, 54, 0, 45}, // a quarter beyond the least
		{0, 400, 0, 0}, {0, 400, 0, 0}, {0, 400, 0, 0},
		{0, 45, 20, 40}, // Go has more to spare than was left
	} {
		now, freed := memoryUse{s.allocated + c.allocated*mb, c.held * mb, c.spare * mb}, false
		s.look(func() memoryUse { return now }, func() { freed, now.held = true, c.left*mb })
		if freed != (c.left > 0) {
			t.Errorf("look %d: freed %t; want %t", i, freed, c.left > 0)
		}
	}
}

// What a burst of work leaves behind goes back to the kernel.
func TestReturnMemory(t *testing.T) {
	const mb = 1 << 20
	before := readMemory()
	burst := make([][]byte, 64)
	for i := range burst {
		burst[i] = make([]byte, mb)
		for at := 0; at < mb; at += 4096 {
			burst[i][at] = 1
		}
	}
	runtime.KeepAlive(burst)
	now := readMemory()
	if now.held < before.held+48*mb || now.allocated < before.allocated+64*mb {
		t.Fatalf("got %+v after %+v; want a burst", now, before)
	}
	s := &spareMemory{allocated: now.allocated}
	s.look(readMemory, debug.FreeOSMemory)
	if s.left > now.held-48*mb {
		t.Errorf("%d MB are held after a burst, %d MB when it ended", s.left/mb, now.held/mb)
	}
}
