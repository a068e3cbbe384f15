package report

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

// Main runs a benchmark for at most that long, until a signal ends it. It exits
// with 1 if the benchmark fails.
func Main(limit time.Duration, measure func(ctx context.Context) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM) // not SIGPIPE: a client that leaves would end it
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if err := measure(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "bench/%s: %v\n", filepath.Base(os.Args[0]), err)
		os.Exit(1)
	}
}
