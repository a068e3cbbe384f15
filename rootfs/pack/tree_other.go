//go:build !linux

package pack

import (
	"context"
	"errors"
	"io"
)

// Trees needs Linux.
func Trees(context.Context, []Subtree, Options, io.Writer) error { return errors.ErrUnsupported }

// Fingerprint needs Linux.
func Fingerprint(context.Context, []Subtree, Options) (string, int64, error) {
	return "", 0, errors.ErrUnsupported
}
