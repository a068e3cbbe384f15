//go:build !linux

package overlay

import (
	"errors"
	"os"

	"cupola/runtime/users"
)

// Linux alone has overlays in mount namespaces. Elsewhere the package compiles, for editors and vet.

// Build needs Linux.
func (Overlay) Build(string, func(*os.File) error) error { return errors.ErrUnsupported }

// Unmount has nothing to do.
func Unmount(string) error { return nil }

// MakePrivate needs Linux.
func MakePrivate(string) error { return errors.ErrUnsupported }

// IsMount reports false.
func IsMount(string) bool { return false }

// MountsBelow finds none.
func MountsBelow(string) ([]string, error) { return nil, nil }

// TryShift needs Linux.
func TryShift(string, users.Range) error { return errors.ErrUnsupported }
