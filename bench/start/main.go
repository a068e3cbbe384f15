// Command start measures the start of containers beside `runc run` of the same
// root file system, user namespace, mounts, limits and allowed system calls,
// taking turns; then the start on images of more and more layers; and then how
// long 250 containers take with a network each. It
// needs root and runc, and touches no network but its containers' own.
package main

import (
	"context"
	"flag"
	"time"

	"cupola/bench/report"
)

func main() {
	rounds := flag.Int("rounds", 31, "how often each start is measured")
	crowds := flag.Int("crowds", 3, "how often many containers are started")
	count := flag.Int("count", 250, "how many they are")
	flag.Parse()
	report.Main(time.Hour, func(ctx context.Context) error { return measure(ctx, *rounds, *crowds, *count) })
}

func measure(ctx context.Context, rounds, crowds, count int) (err error) {
	w, err := newWorld(ctx)
	if err != nil {
		return err
	}
	defer w.close(&err)
	r, err := newRunc(w)
	if err != nil {
		return err
	}
	if err := firstBytes(ctx, w, r, rounds); err != nil {
		return err
	}
	if err := byLayers(ctx, w, rounds); err != nil {
		return err
	}
	return density(ctx, w, r, crowds, count)
}
