//go:build linux && cgo

package container

import (
	"context"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"cupola/runtime/network"
)

// BenchmarkDensity starts 250 containers with their own network, one after
// another, and takes them all away again.
func BenchmarkDensity(b *testing.B) {
	const count = 250
	e := newBench(b)
	n, err := network.New(testNetwork(filepath.Join(filepath.Dir(e.rootfs), "net")))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := n.Teardown(context.Background()); err != nil {
			b.Error(err)
		}
	})
	var starts, ends []time.Duration
	for b.Loop() {
		begin := time.Now()
		for i := range count {
			e.startAttached(b, n, "app-"+strconv.Itoa(i))
		}
		started := time.Now()
		for i := range count {
			id := "app-" + strconv.Itoa(i)
			if err := e.Remove(b.Context(), id); err != nil {
				b.Fatal(err)
			}
			if err := n.Release(b.Context(), id); err != nil {
				b.Fatal(err)
			}
		}
		starts, ends = append(starts, started.Sub(begin)), append(ends, time.Since(started))
	}
	b.ReportMetric(median(starts).Seconds(), "s/start-250")
	b.ReportMetric(median(ends).Seconds(), "s/remove-250")
}

func (b *bench) startAttached(t testing.TB, n *network.Network, id string) {
	t.Helper()
	a, err := n.Acquire(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	spec := b.spec(id, "sleep")
	spec.NetNS = a.NetNS
	spec.Limits = Limits{MemoryBytes: 64 << 20, CPUShares: 256, Pids: 1024}
	if _, err := b.Start(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
}
