package cell

import (
	"errors"
	"strings"
)

// failure is why an action failed, in Diego's words.
type failure []string

func (f failure) Error() string { return strings.Join(f, "; ") }

// errCancelled is the end of an action that was not let go on. Diego hides it.
var errCancelled = errors.New("cancelled")

// errGrace is the error of a process that had to be killed. Diego reports it
// only if no other action wraps the process.
var errGrace = errors.New("exceeded graceful shutdown interval")

// reasonsOf returns the reasons in err.
func reasonsOf(err error) []string {
	if err == nil || errors.Is(err, errCancelled) || errors.Is(err, errGrace) {
		return nil
	}
	if f, ok := errors.AsType[failure](err); ok {
		return f
	}
	return []string{reason(err)}
}

// joined is the end of several actions.
func joined(errs []error) error {
	var reasons failure
	var cancelled error
	for _, err := range errs {
		reasons = append(reasons, reasonsOf(err)...)
		if errors.Is(err, errCancelled) || errors.Is(err, errGrace) {
			cancelled = errCancelled
		}
	}
	if len(reasons) > 0 {
		return reasons
	}
	return cancelled
}
