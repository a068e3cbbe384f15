package rootfs

import (
	"fmt"
	"testing"

	"cupola/rootfs/layer"
	"cupola/rootfs/root"
)

// BenchmarkMount makes and removes the root of one container on a stack and a droplet that are unpacked already.
func BenchmarkMount(b *testing.B) {
	needRoot(b)
	s := newStore(b, Config{IDs: testIDs})
	l := droplet(b, "hello")
	if _, err := s.Layers.Unpack(b.Context(), l); err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	for i := range b.N {
		id := fmt.Sprintf("b%d", i)
		if _, err := s.Mount(b.Context(), root.Request{ID: id, Stack: "minifs", Layers: []layer.Layer{l}, DiskBytes: 1 << 30}); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		if err := s.Unmount(b.Context(), id); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}

// BenchmarkUnmount removes such a root.
func BenchmarkUnmount(b *testing.B) {
	needRoot(b)
	s := newStore(b, Config{IDs: testIDs})
	for i := range b.N {
		b.StopTimer()
		id := fmt.Sprintf("b%d", i)
		if _, err := s.Mount(b.Context(), root.Request{ID: id, Stack: "minifs", DiskBytes: 1 << 30}); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		if err := s.Unmount(b.Context(), id); err != nil {
			b.Fatal(err)
		}
	}
}
