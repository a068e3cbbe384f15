//go:build !linux

package stack

import (
	"errors"

	"cupola/runtime/users"
)

// probe needs Linux.
func probe(Stack, users.Range) error { return errors.ErrUnsupported }
