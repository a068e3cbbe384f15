// Command sleep measures apps that sleep: what they and the daemon hold, and how long the
// first request takes, while they are frozen and while they have no instances. The last
// rows are after a restart: what the apps cost, without what their start has left.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"time"

	"cupola/bench/daemon"
	"cupola/bench/report"
	"cupola/store/cf"
)

func main() {
	binary := flag.String("cupola", "bin/cupola", "the built cupola")
	app := flag.String("app", "examples/static", "the app")
	count := flag.Int("apps", 100, "how many apps sleep")
	wakes := flag.Int("wakes", 40, "how many of them are woken")
	flag.Parse()
	report.Main(time.Hour, func(ctx context.Context) error { return measure(ctx, *binary, *app, *count, min(*wakes, *count)) })
}

// bed is the apps of a daemon, with the tables of what was measured.
type bed struct {
	*daemon.Daemon
	*daemon.Fleet
	count, wakes  int
	memory, waits *report.Table
}

func measure(ctx context.Context, binary, app string, count, wakes int) error {
	cells := fmt.Sprintf("[{name: a, memory: 64G, disk: 256G, containers: %d}]", count+10)
	return daemon.Run(binary, func(d *daemon.Daemon) error {
		b := &bed{Daemon: d, wakes: wakes, memory: report.NewTable("apps", "container, kB each", "daemon's RSS, MB", "of it anonymous", "CPU, % of a core"),
			waits: report.NewTable("first request", "median, ms", "p95", "longest")}
		if err := b.restarted(ctx, "none, after a restart"); err != nil {
			return err
		}
		f, err := daemon.NewFleet(ctx, d, app)
		if err != nil {
			return err
		}
		if err := errors.Join(f.Grow(ctx, count), f.Route(ctx)); err != nil {
			return err
		}
		b.Fleet, b.count = f, count
		return b.measure(ctx)
	}, "--cells", cells)
}

// measure lets the apps sleep deeper and deeper.
func (b *bed) measure(ctx context.Context) error {
	for _, s := range []struct {
		name, label, value string
		asleep             time.Duration // from SLEEPING until they are as they are to be
	}{
		{"awake", "", "", 0},
		{"frozen", cf.LabelSleepAfter, "2s", 0},
		{"frozen for a minute", cf.LabelSleepAfter, "2s", 65 * time.Second},
		{"without instances", cf.LabelSleepStopAfter, "1s", 30 * time.Second},
	} {
		if s.label != "" {
			if err := b.Label(ctx, s.label, s.value); err != nil {
				return err
			}
			if err := b.Await(ctx, "SLEEPING"); err != nil {
				return err
			}
		}
		if err := b.look(ctx, s.name, s.asleep); err != nil {
			return err
		}
		if err := b.wake(ctx, s.name); err != nil {
			return err
		}
	}
	if err := errors.Join(b.Await(ctx, "SLEEPING"), b.restarted(ctx, "without instances, after a restart")); err != nil {
		return err
	}
	fmt.Printf("%d static apps of 16 MB:\n\n", b.count)
	b.memory.Print(os.Stdout)
	fmt.Printf("\nThe first request of a new connection, to %d of them one after the other:\n\n", b.wakes)
	b.waits.Print(os.Stdout)
	return nil
}

// restarted looks at the daemon some time after a restart, when it has returned what the start took.
func (b *bed) restarted(ctx context.Context, name string) error {
	if err := b.Restart(); err != nil {
		return err
	}
	return b.look(ctx, name, 2*time.Minute)
}

// quiet is how long the daemon is watched.
const quiet = 6 * time.Second

// look notes what the apps and the daemon hold.
func (b *bed) look(ctx context.Context, name string, after time.Duration) error {
	if err := pass(ctx, after); err != nil {
		return err
	}
	before, err := daemon.CPUTime(b.PID())
	if err != nil {
		return err
	}
	if err := pass(ctx, quiet); err != nil {
		return err
	}
	used, err := daemon.CPUTime(b.PID())
	if err != nil {
		return err
	}
	held, err := daemon.Status(b.PID(), "VmRSS", "RssAnon")
	if err != nil {
		return err
	}
	each := "–"
	if b.count > 0 {
		sum, err := b.MemoryBytes(ctx)
		if err != nil {
			return err
		}
		each = strconv.FormatInt(sum/int64(b.count)/1000, 10)
	}
	b.memory.Add(name, each, report.Figure(float64(held[0])/1024, 1), report.Figure(float64(held[1])/1024, 1), report.Figure(100*(used-before).Seconds()/quiet.Seconds(), 1))
	return nil
}

func pass(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// wake asks some of the apps.
func (b *bed) wake(ctx context.Context, name string) error {
	var took []float64
	for n := range b.wakes {
		began := time.Now()
		if err := b.ask(ctx, fmt.Sprintf("idle-%d.localhost", n)); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		took = append(took, report.MS(time.Since(began)))
	}
	b.waits.Add(name, report.Figure(report.Median(took), 2), report.Figure(report.Quantile(took, 0.95), 2), report.Figure(report.Quantile(took, 1), 2))
	return nil
}

func (b *bed) ask(ctx context.Context, host string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, b.URL()+"/", nil)
	if err != nil {
		return err
	}
	req.Host = host
	res, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, res.Body); err != nil || res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s, %w", host, res.Status, err)
	}
	return nil
}
