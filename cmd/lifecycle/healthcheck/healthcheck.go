package healthcheck

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"cupola/runtime/contract"
)

// mode is how long a probe is repeated. At most one interval is set; with
// none the probe runs once.
type mode struct {
	startup        time.Duration // until it passes or startupTimeout ends
	startupTimeout time.Duration // 0 is none
	liveness       time.Duration // until it fails
	readiness      time.Duration // until it fails
	untilReady     time.Duration // until it passes
}

// Main probes as args (without the program's name) say and returns the exit
// code; why a probe failed is on standard error.
func Main(args []string) int {
	p, m, err := parse(args, os.Stderr)
	if err != nil {
		return 2
	}
	prefix, err := m.run(context.Background(), p.check)
	if err == nil {
		return 0
	}
	f, ok := err.(failure)
	if !ok {
		f = failure{exitUnknown, fmt.Sprintf("Unknown error encountered in healthcheck: %v", err)}
	}
	fmt.Fprintln(os.Stderr, prefix+f.text)
	return f.code
}

func parse(args []string, usage io.Writer) (probe, mode, error) {
	var p probe
	var m mode
	flags := flag.NewFlagSet("healthcheck", flag.ContinueOnError)
	flags.SetOutput(usage)
	flags.StringVar(&p.network, "network", "tcp", "network type to dial with (e.g. unix, tcp)")
	flags.StringVar(&p.uri, "uri", "", "uri to healthcheck; empty connects only")
	flags.StringVar(&p.port, "port", strconv.Itoa(contract.DefaultPort), "port to healthcheck")
	flags.DurationVar(&p.timeout, "timeout", time.Second, "time for one attempt")
	flags.DurationVar(&m.startup, "startup-interval", 0, "repeat at this interval until an attempt passes")
	flags.DurationVar(&m.startupTimeout, "startup-timeout", time.Minute, "give up startup after this time; 0 never does")
	flags.DurationVar(&m.liveness, "liveness-interval", 0, "repeat at this interval until an attempt fails")
	flags.DurationVar(&m.readiness, "readiness-interval", 0, "repeat at this interval until an attempt fails")
	flags.DurationVar(&m.untilReady, "until-ready-interval", 0, "repeat at this interval until an attempt passes")
	err := flags.Parse(args)
	return p, m, err
}

// run repeats check as m says. The prefix belongs before the error's text.
func (m mode) run(ctx context.Context, check func(context.Context) error) (prefix string, err error) {
	switch {
	case m.startup > 0:
		return m.runStartup(ctx, check)
	case m.liveness > 0:
		return "Liveness check unsuccessful: ", untilFailure(ctx, m.liveness, check)
	case m.readiness > 0:
		return "Readiness check unsuccessful: ", untilFailure(ctx, m.readiness, check)
	case m.untilReady > 0:
		for check(ctx) != nil {
			if err := pause(ctx, m.untilReady); err != nil {
				return "", err
			}
		}
		return "", nil
	}
	return "", check(ctx)
}

func (m mode) runStartup(ctx context.Context, check func(context.Context) error) (string, error) {
	if m.startupTimeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, m.startupTimeout)
		defer cancel()
	}
	last := error(failure{exitTimeout, "no attempt ended"})
	for attempt := 1; ; attempt++ {
		err := check(ctx)
		if err == nil {
			return "", nil
		}
		if ctx.Err() == nil {
			last = err
		}
		if pause(ctx, m.startup) != nil {
			return fmt.Sprintf("Timed out after %s (%d attempts) waiting for startup check to succeed: ", m.startupTimeout, attempt), last
		}
	}
}

func untilFailure(ctx context.Context, interval time.Duration, check func(context.Context) error) error {
	for {
		if err := check(ctx); err != nil {
			return err
		}
		if err := pause(ctx, interval); err != nil {
			return err
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
