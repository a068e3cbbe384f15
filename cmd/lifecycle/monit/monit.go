// Package monit runs the processes of a BOSH job that has a monit file, as monit does for BOSH's agent: by start programs that leave a
// process behind, which is known by its pidfile, and by stop programs. It runs as root, in one container for all processes of the job.
package monit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"cupola/runtime/contract"
)

// Main does what the first argument says.
func Main(args []string) int {
	if err := run(args); err != nil {
		fmt.Fprintln(os.Stderr, "monit:", err)
		return 1
	}
	return 0
}

func run(args []string) error {
	switch {
	case len(args) == 4 && args[0] == contract.MonitInstall:
		return install(args[1], args[2], args[3])
	case len(args) != 2 || args[0] != contract.MonitRun && args[0] != contract.MonitSummary:
		return fmt.Errorf("usage: monit %s FROM TO GROUP | %s CHECKS | %s CHECKS", contract.MonitInstall, contract.MonitRun, contract.MonitSummary)
	}
	var checks []contract.MonitCheck
	if err := json.Unmarshal([]byte(args[1]), &checks); err != nil {
		return fmt.Errorf("read checks: %w", err)
	}
	if args[0] == contract.MonitSummary {
		return summary(checks)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	s := &supervisor{checks: checks, pause: cycle, say: func(format string, args ...any) { fmt.Printf("monit: "+format+"\n", args...) }}
	return s.run(ctx)
}

// cycle is how often the processes are looked at: as on stemcells.
const cycle = 10 * time.Second

// summary names the processes that do not run.
func summary(checks []contract.MonitCheck) error {
	var faults []error
	for _, c := range checks {
		if _, alive := pid(c); !alive {
			faults = append(faults, fmt.Errorf("process %s does not run (%s)", c.Name, c.Pidfile))
		}
	}
	return errors.Join(faults...)
}
