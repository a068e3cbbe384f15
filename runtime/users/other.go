//go:build !linux || !cgo

package users

import (
	"errors"
	"os"
)

// Namespace makes the user namespace of a container: on Linux.
func Namespace(Range) (*os.File, error) { return nil, errors.ErrUnsupported }

// Shift shows files as another range's: on Linux.
func Shift(*os.File, Range, Range) (*os.File, error) { return nil, errors.ErrUnsupported }

// Attach mounts what Shift returned: on Linux.
func Attach(*os.File, string) error { return errors.ErrUnsupported }
