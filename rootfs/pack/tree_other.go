//go:build !linux

package pack

import (
	"context"
	"errors"
	"io"
)

// Tree is Linux's alone.
func Tree(context.Context, string, Options, io.Writer) error { return errors.ErrUnsupported }
