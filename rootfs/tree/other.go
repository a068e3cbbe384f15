//go:build !linux

package tree

import (
	"errors"
	"io/fs"
	"os"

	"cupola/runtime/users"
)

// Containers need Linux. Elsewhere the package compiles, for editors and vet.

// OpenDir needs Linux.
func OpenDir(*os.File, string) (*os.File, error) { return nil, errors.ErrUnsupported }

// OpenRegular needs Linux.
func OpenRegular(*os.File, string) (*os.File, error) { return nil, errors.ErrUnsupported }

// OpenFollowing needs Linux.
func OpenFollowing(*os.File, string) (*os.File, error) { return nil, errors.ErrUnsupported }

// Exists needs Linux.
func Exists(*os.File, string) bool { return false }

// AddLink needs Linux.
func AddLink(*os.File, string, string, users.Range) error { return errors.ErrUnsupported }

func makeDir(*os.File, string, Owner, users.Range) error { return errors.ErrUnsupported }

// ReplaceFile needs Linux.
func ReplaceFile(*os.File, string, []byte, fs.FileMode, Owner, users.Range) error {
	return errors.ErrUnsupported
}

// Sync does nothing where there are no containers.
func Sync(string) error { return nil }

// CopyRoot needs Linux.
func CopyRoot(string, string) error { return errors.ErrUnsupported }
