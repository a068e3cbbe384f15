// Command scale measures how long an app takes from no instance to many: until the API says that all of them run, which
// the router knows then, and what they cost the processors and the memory.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"cupola/bench/daemon"
	"cupola/bench/report"
)

func main() {
	binary := flag.String("cupola", "bin/cupola", "the built cupola")
	app := flag.String("app", "examples/static", "the app")
	counts := flag.String("counts", "50,250", "how many instances, one after the other")
	flag.Parse()
	report.Main(10*time.Minute, func(ctx context.Context) error { return measure(ctx, *binary, *app, strings.Split(*counts, ",")) })
}

func measure(ctx context.Context, binary, app string, counts []string) error {
	most, err := strconv.Atoi(counts[len(counts)-1])
	if err != nil {
		return err
	}
	cells := fmt.Sprintf("[{name: a, memory: 64G, disk: 256G, containers: %d}]", most+10)
	return daemon.Run(binary, func(d *daemon.Daemon) error {
		f, err := daemon.NewFleet(ctx, d, app)
		if err != nil {
			return err
		}
		if err := f.Await(ctx, "RUNNING"); err != nil {
			return err
		}
		table := report.NewTable("instances", "all run, s", "ms each", "CPU ms each", "machine's memory, kB each", "daemon's, kB each", "none left, s")
		for _, text := range counts {
			count, err := strconv.Atoi(text)
			if err != nil {
				return err
			}
			if err := one(ctx, d, f, count, table); err != nil {
				return err
			}
		}
		fmt.Printf("A static app of 16 MB, scaled from no instance:\n\n")
		table.Print(os.Stdout)
		return nil
	}, "--cells", cells)
}

// one scales the app to none, to count, and to none again.
func one(ctx context.Context, d *daemon.Daemon, f *daemon.Fleet, count int, table *report.Table) error {
	if err := none(ctx, d, f); err != nil {
		return err
	}
	before, err := look(d)
	if err != nil {
		return err
	}
	began := time.Now()
	if err := f.Scale(ctx, count); err != nil {
		return err
	}
	took := time.Since(began)
	after, err := look(d)
	if err != nil {
		return err
	}
	began = time.Now()
	if err := none(ctx, d, f); err != nil {
		return err
	}
	each := func(n int) string { return strconv.Itoa(n / count) }
	table.Add(strconv.Itoa(count), report.Figure(took.Seconds(), 2), report.Figure(report.MS(took)/float64(count), 1),
		report.Figure(report.MS(after.cpu-before.cpu)/float64(count), 1), each(before.available-after.available), each(after.held-before.held),
		report.Figure(time.Since(began).Seconds(), 2))
	return nil
}

// none waits until nothing of the instances is mounted: the API forgets them before they have ended.
func none(ctx context.Context, d *daemon.Daemon, f *daemon.Fleet) error {
	if err := f.Scale(ctx, 0); err != nil {
		return err
	}
	for {
		mounts, err := os.ReadFile("/proc/self/mounts")
		if err != nil || !strings.Contains(string(mounts), d.Dir+"/rootfs/run/") {
			return err
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// sight is what there was at one time.
type sight struct {
	cpu             time.Duration // of the daemon and of what it started and has ended, such as the launcher
	available, held int           // the machine's free memory, and the daemon's anonymous memory, in kB
}

func look(d *daemon.Daemon) (s sight, err error) {
	if s.cpu, err = daemon.FamilyTime(d.PID()); err != nil {
		return s, err
	}
	if s.available, err = daemon.Available(); err != nil {
		return s, err
	}
	held, err := daemon.Status(d.PID(), "RssAnon")
	if err == nil {
		s.held = held[0]
	}
	return s, err
}
