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
	code, err := run(args)
	if err != nil {
		fmt.Fprintln(os.Stderr, "monit:", err)
		return 1
	}
	return code
}

func run(args []string) (code int, err error) {
	verb := ""
	if len(args) > 0 {
		verb = args[0]
	}
	switch {
	case verb == contract.MonitInstall && len(args) == 4:
		return 0, install(args[1], args[2], args[3])
	case verb == contract.MonitRun && len(args) == 3:
		return 0, supervise(args[1], args[2])
	case (verb == contract.MonitExec || verb == contract.MonitDrain) && len(args) >= 3:
		return execute(args[1], request{Args: args[2:], Env: os.Environ(), Unmonitor: verb == contract.MonitDrain})
	case verb == contract.MonitTest && len(args) == 2:
		return 0, test(args[1])
	case verb == contract.MonitSummary && len(args) == 2:
		checks, err := parse(args[1])
		return 0, errors.Join(err, summary(checks))
	}
	return 0, fmt.Errorf("usage: monit %s FROM TO GROUP | %s DIR CHECKS | %s|%s DIR PROGRAM ARGUMENT… | %s CONDITION | %s CHECKS",
		contract.MonitInstall, contract.MonitRun, contract.MonitExec, contract.MonitDrain, contract.MonitTest, contract.MonitSummary)
}

func parse(text string) (checks []contract.MonitCheck, err error) {
	if err := json.Unmarshal([]byte(text), &checks); err != nil {
		return nil, fmt.Errorf("read checks: %w", err)
	}
	return checks, nil
}

// supervise runs the processes of the job in a directory, and scripts next to them.
func supervise(dir, text string) error {
	checks, err := parse(text)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	s := &supervisor{checks: checks, pause: cycle, say: func(format string, args ...any) { fmt.Printf("monit: "+format+"\n", args...) }}
	serving, end := context.WithCancel(context.Background()) // while the processes stop, too
	defer end()
	if err := s.serve(serving, dir); err != nil {
		s.say("scripts do not see the processes: %v", err)
	}
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
