// Command lists measures the lists of the API that grow with the apps of a
// machine, on few of them and on many.
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
	few := flag.Int("few", 250, "how many apps at first, 20 to a space, with 5 routes each")
	times := flag.Int("times", 4, "how many times as many then")
	calls := flag.Int("n", 15, "how many calls of each list")
	flag.Parse()
	report.Main(2*time.Minute, func(ctx context.Context) error { return measure(ctx, *binary, []int{*few, *few * *times}, *calls) })
}

func measure(ctx context.Context, binary string, sizes []int, calls int) error {
	return daemon.Run(binary, func(d *daemon.Daemon) error {
		c, err := d.Login(ctx)
		if err != nil {
			return err
		}
		p := &platform{Client: c}
		held := report.NewTable("apps", "spaces", "routes", "RSS, MB", "of it anonymous")
		costs := make([][]cost, len(sizes))
		for i, apps := range sizes {
			if err := p.grow(ctx, apps); err != nil {
				return err
			}
			for _, l := range p.lists() {
				one, err := l.measure(ctx, c, d.PID(), calls)
				if err != nil {
					return err
				}
				costs[i] = append(costs[i], one)
			}
			mem, err := daemon.Status(d.PID(), "VmRSS", "RssAnon")
			if err != nil {
				return err
			}
			held.Add(fmt.Sprint(apps), fmt.Sprint(len(p.spaces)), fmt.Sprint(apps*routesOfApp), report.Figure(float64(mem[0])/1024, 1), report.Figure(float64(mem[1])/1024, 1))
		}
		fmt.Printf("Lists with %d apps and with %d, median of %d calls each, and the CPU time that the daemon took for one:\n\n", sizes[0], sizes[1], calls)
		compare(p.lists(), costs, sizes).Print(os.Stdout)
		fmt.Printf("What the daemon holds after these calls:\n\n")
		held.Print(os.Stdout)
		return nil
	})
}

// compare is the table of what each list cost at both sizes.
func compare(lists []list, costs [][]cost, sizes []int) *report.Table {
	t := report.NewTable("list", fmt.Sprintf("ms with %d", sizes[0]), fmt.Sprintf("ms with %d", sizes[1]), "CPU ms with few", "CPU ms with many", "× CPU", "MB with many")
	for i, l := range lists {
		few, many := costs[0][i], costs[1][i]
		t.Add(l.name, report.Figure(report.MS(few.wall), 1), report.Figure(report.MS(many.wall), 1),
			report.Figure(report.MS(few.cpu), 1), report.Figure(report.MS(many.cpu), 1),
			times(few.cpu, many.cpu), report.Figure(float64(many.bytes)/(1<<20), 2))
	}
	return t
}

// times is how many times few is in many; what the kernel's clock cannot tell
// from nothing has no ratio.
func times(few, many time.Duration) string {
	if few < 2*time.Millisecond {
		return "–"
	}
	return report.Figure(many.Seconds()/few.Seconds(), 1)
}
