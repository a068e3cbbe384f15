//go:build !linux

package doctor

import (
	"context"
	"errors"
)

// Check fails: cupola needs Linux.
func Check(context.Context, Options) []Result {
	return []Result{{Name: "kernel", Level: Fail, Detail: "this is not Linux", Fix: "run cupola on Linux, or in a virtual machine with it"}}
}

// Leaks returns errors.ErrUnsupported.
func Leaks(context.Context, func(dataDir string) Owner, ...string) ([]Leak, error) {
	return nil, errors.ErrUnsupported
}
