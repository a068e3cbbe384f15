package cell

import (
	"context"
	"fmt"
	"testing"

	"cupola/runtime/cell/conformance"
	"cupola/runtime/container"
	"cupola/runtime/lrp"
)

// BenchmarkLife measures a container's whole life: from Start until nothing of
// it is left.
func BenchmarkLife(b *testing.B) {
	w := newWorld(b, container.Launch)
	l, err := w.open()
	if err != nil {
		b.Fatal(err)
	}
	defer l.tearDown(b)
	cfg := l.config(&conformance.Recorder{})
	ended := make(chan lrp.Exit, 1)
	cfg.Events = func(e lrp.Event) {
		if e.Type == lrp.EventExited {
			ended <- e.Exit
		}
	}
	c, err := New(cfg)
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	n := 0
	for b.Loop() {
		c.Start(w.instance(fmt.Sprintf("g%d", n), "exit", "1"))
		if exit := <-ended; exit.Code != 1 {
			b.Fatalf("got %+v; want exit 1", exit)
		}
		n++
	}
	cancel()
	if err := <-done; err != nil {
		b.Error(err)
	}
}
