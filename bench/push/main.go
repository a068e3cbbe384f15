// Command push measures `cupola push` of the demo app, split by phase. The
// command talks to the daemon through a proxy here that writes down when each
// call began and ended.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"time"

	"cupola/bench/daemon"
	"cupola/bench/report"
)

func main() {
	rounds := flag.Int("rounds", 5, "how often the app is pushed, each time as another")
	binary := flag.String("cupola", "bin/cupola", "the built cupola")
	app := flag.String("app", "examples/demo", "the app")
	before := flag.String("before", "", "another build, whose cf push is measured by turns with that of cupola")
	calls := flag.Bool("calls", false, "show the calls of each push")
	flag.Parse()
	report.Main(3*time.Minute, func(ctx context.Context) error {
		if err := measure(ctx, *rounds, *binary, *app, *calls); err != nil {
			return err
		}
		if _, err := exec.LookPath("cf"); err != nil {
			return nil // the CLI is not there on every machine
		}
		return measureCLI(ctx, *rounds, *before, *binary, *app)
	})
}

func measure(ctx context.Context, rounds int, binary, app string, show bool) error {
	return daemon.Run(binary, func(d *daemon.Daemon) error {
		p, err := newProxy(d)
		if err != nil {
			return err
		}
		defer p.close()
		fmt.Printf("The daemon served %s ms after its first start.\n\n", ms(d.Ready))
		var all [][]phase
		for n := range rounds + 1 {
			phases, err := p.push(ctx, app, fmt.Sprintf("push-%d", n))
			if err != nil {
				return err
			}
			if show {
				p.show()
			}
			all = append(all, phases)
		}
		printPhases(app, all)
		return nil
	})
}

func printPhases(app string, all [][]phase) {
	fmt.Printf("`cupola push` of %s, ms, the first and the median of the %d after it:\n\n", app, len(all)-1)
	table := report.NewTable("phase", "first", "later")
	for i, first := range all[0] {
		var took []time.Duration
		for _, phases := range all[1:] {
			took = append(took, phases[i].took)
		}
		table.Add(first.name, ms(first.took), ms(report.Median(took)))
	}
	table.Print(os.Stdout)
}

func ms(d time.Duration) string { return report.Figure(report.MS(d), 0) }
