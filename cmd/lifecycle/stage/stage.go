// Package stage does in a pod what the daemon does in a staging container of its own machine: it brings what the builder needs,
// runs it, and takes away what it has made. The log and the reasons of failures are the same.
//
// The daemon may be away for a while: what is asked of it is asked again until the time of the staging is over.
package stage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"cupola/runtime/contract"
)

// Main stages, and returns the exit code.
func Main() int {
	// What the buildpacks run has the same user. It is not to read the token, nor what the plan has for downloads alone.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return report(contract.StagerReport, fmt.Errorf("hide the credentials of the staging: %w", err))
	}
	c, err := newClient()
	if err != nil {
		return report(contract.StagerReport, err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	s := &stager{client: c, print: printer()}
	if s.plan, err = c.plan(ctx); err != nil {
		return report(contract.StagerReport, err)
	}
	return report(contract.StagerReport, s.run(ctx))
}

// printer prints lines, one at a time.
func printer() func(string, ...any) {
	var mu sync.Mutex
	return func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Printf(format+"\n", args...)
	}
}

// stager is one staging.
type stager struct {
	client *client
	plan   contract.StagingPlan
	print  func(format string, args ...any)
}

// run does all steps, and sends the result, also of a staging that failed: it may say why.
func (s *stager) run(ctx context.Context) error {
	err := s.do(ctx, s.plan.Steps)
	if ctx.Err() != nil {
		return errCancelled
	}
	within, cancel := context.WithTimeout(ctx, awayTime)
	defer cancel()
	sent := s.send(within, s.plan.Result, contract.OutputResult)
	if err == nil && sent != nil {
		err = failure{reasons: []string{"failed to fetch result"}}
	}
	return err
}

// failure is why a step failed, in Diego's words.
type failure struct {
	reasons []string
	code    int // of the process; 0 of none
}

func (f failure) Error() string { return strings.Join(f.reasons, "; ") }

// errCancelled is the end of a step that was not let go on. Diego hides it.
var errCancelled = errors.New("cancelled")

// errLost says that the daemon has no plan for this staging.
var errLost = errors.New("the daemon that started this staging is gone")

// report writes how the staging ended for the daemon, and returns the exit code.
func report(to string, err error) int {
	if err == nil {
		return 0
	}
	r := contract.StagingReport{Lost: errors.Is(err, errLost)}
	code := contract.StagerExit
	if f, ok := errors.AsType[failure](err); ok {
		r.Reasons = f.reasons
		if f.code != 0 {
			code = f.code
		}
	} else if !r.Lost && !errors.Is(err, errCancelled) {
		r.Reasons = []string{"failed to run container: " + err.Error()}
	}
	text, _ := json.Marshal(r) // texts alone
	for len(text) > contract.MaxStagerReport && len(r.Reasons) > 0 {
		last := len(r.Reasons) - 1
		r.Reasons[last] = r.Reasons[last][:len(r.Reasons[last])/2]
		if r.Reasons[last] == "" {
			r.Reasons = r.Reasons[:last]
		}
		text, _ = json.Marshal(r)
	}
	_ = os.WriteFile(to, text, 0o600) // without it, the exit code has to do
	return code
}
