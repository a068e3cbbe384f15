// Command memory measures what a daemon holds while its apps are idle: with
// none, and with more and more static apps of 16 MB. One is pushed; the others
// run copies of its droplet.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"cupola/bench/daemon"
	"cupola/bench/report"
)

func main() {
	binary := flag.String("cupola", "bin/cupola", "the built cupola")
	app := flag.String("app", "examples/static", "the app")
	settle := flag.Duration("settle", 6*time.Second, "how long it is left alone before it is looked at")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGPIPE)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	if err := measure(ctx, *binary, *app, *settle); err != nil {
		fmt.Fprintln(os.Stderr, "bench/memory:", err)
		os.Exit(1)
	}
}

func measure(ctx context.Context, binary, app string, settle time.Duration) (err error) {
	d, err := daemon.Start(binary, os.Stderr)
	if err != nil {
		return err
	}
	defer func() {
		if stopped := d.Stop(); err == nil {
			err = stopped
		}
	}()
	l := &lookout{d.PID(), settle, report.NewTable("apps", "RSS, MB", "of it anonymous", "threads", "CPU, % of a core", "the new ones ran after, s")}
	if err := l.look(ctx, 0, 0); err != nil {
		return err
	}
	f, err := newFleet(ctx, d, app)
	if err != nil {
		return err
	}
	for _, count := range []int{10, 50} {
		began := time.Now()
		if err := f.grow(ctx, count); err != nil {
			return err
		}
		if err := l.look(ctx, count, time.Since(began)); err != nil {
			return err
		}
	}
	fmt.Printf("An idle daemon with static apps of 16 MB:\n\n")
	l.table.Print(os.Stdout)
	return nil
}
