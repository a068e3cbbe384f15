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

// clearTime bounds Clear: a killed process takes a moment to exit and to release
// its resources.
const clearTime = 20 * time.Second

// Clear removes what a stopped daemon left in the kernel, with the fixes that
// Leaks returns. It does not write to data directories.
func Clear(ctx context.Context, o Owner) error {
	ctx, cancel := context.WithTimeout(ctx, clearTime)
	defer cancel()
	s := survey{thisMachine(Options{})}
	for {
		left, err := s.clear(ctx, o)
		if err == nil && !left {
			return nil
		}
		select {
		case <-time.After(kernelDelay):
		case <-ctx.Done():
			return errors.Join(err, context.Cause(ctx))
		}
	}
}

// clear tries once to remove all leaks, and reports whether there were any.
func (s survey) clear(ctx context.Context, o Owner) (any bool, err error) {
	found, err := s.all(nil)
	if err != nil {
		return false, err
	}
	found = slices.DeleteFunc(found, func(f finding) bool { return f.Kind == kindDirectory || !o.owns(f) })
	for _, f := range found {
		if out, cerr := exec.CommandContext(ctx, "sh", "-c", strings.TrimPrefix(f.Fix, "sudo ")).CombinedOutput(); cerr != nil {
			err = errors.Join(err, fmt.Errorf("cannot remove %s: '%s': %w: %s", f.Leak, f.Fix, cerr, out))
		}
	}
	return len(found) > 0, err
}
