// Command memory measures what a daemon holds while its apps are idle: with
// none, and with more and more static apps of 16 MB. One is pushed; the others
// run copies of its droplet.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"cupola/bench/daemon"
	"cupola/bench/report"
)

func main() {
	binary := flag.String("cupola", "bin/cupola", "the built cupola")
	app := flag.String("app", "examples/static", "the app")
	settle := flag.Duration("settle", 6*time.Second, "how long it is left alone before it is looked at")
	flag.Parse()
	report.Main(2*time.Minute, func(ctx context.Context) error { return measure(ctx, *binary, *app, *settle) })
}

func measure(ctx context.Context, binary, app string, settle time.Duration) error {
	return daemon.Run(binary, func(d *daemon.Daemon) error {
		l := &lookout{d.PID(), settle, report.NewTable("apps", "RSS, MB", "of it anonymous", "threads", "CPU, % of a core", "the new ones ran after, s")}
		if err := l.look(ctx, 0, 0); err != nil {
			return err
		}
		f, err := daemon.NewFleet(ctx, d, app)
		if err != nil {
			return err
		}
		for _, count := range []int{10, 50} {
			began := time.Now()
			if err := f.Grow(ctx, count); err != nil {
				return err
			}
			if err := l.look(ctx, count, time.Since(began)); err != nil {
				return err
			}
		}
		fmt.Printf("An idle daemon with static apps of 16 MB:\n\n")
		l.table.Print(os.Stdout)
		return nil
	})
}
