package doctor

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// clearTime bounds Clear: a process takes a moment to end, and what it uses to be
// free.
const clearTime = 20 * time.Second

// Clear takes away what a daemon that has ended left in the kernel, by the commands
// that Leaks names. It writes to no data directory.
func Clear(ctx context.Context, o Owner) error {
	ctx, cancel := context.WithTimeout(ctx, clearTime)
	defer cancel()
	m := thisMachine(Options{})
	for {
		left, err := m.clear(ctx, o)
		if err == nil && !left {
			return nil
		}
		select {
		case <-time.After(settleTime):
		case <-ctx.Done():
			return errors.Join(err, context.Cause(ctx))
		}
	}
}

// clear tries once to take away all that there is, and reports whether there was
// any.
func (m *machine) clear(ctx context.Context, o Owner) (any bool, err error) {
	found, err := m.survey()
	if err != nil {
		return false, err
	}
	found = slices.DeleteFunc(found, func(f finding) bool { return f.Kind == kindDirectory || !o.owns(f) })
	for _, f := range found {
		if out, cerr := exec.CommandContext(ctx, "sh", "-c", strings.TrimPrefix(f.Mend, "sudo ")).CombinedOutput(); cerr != nil {
			err = errors.Join(err, fmt.Errorf("%s is left: '%s': %w: %s", f.Leak, f.Mend, cerr, out))
		}
	}
	return len(found) > 0, err
}
