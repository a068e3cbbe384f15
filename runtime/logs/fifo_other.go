//go:build !linux

package logs

import (
	"errors"
	"io"
	"os"
)

// MakeFIFO works on Linux only.
func MakeFIFO(string) error { return errors.ErrUnsupported }

// OpenWriter works on Linux only.
func OpenWriter(string) (*os.File, error) { return nil, errors.ErrUnsupported }

type reader struct{ file, keeper *os.File }

func openReader(string) (*reader, error) { return nil, errors.ErrUnsupported }

func (r *reader) close() {}

func (r *reader) rest(io.Writer, []byte) error { return errors.ErrUnsupported }
