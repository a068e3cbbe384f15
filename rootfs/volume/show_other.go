//go:build !linux

package volume

import (
	"errors"
	"os"
)

func openDirectory(string, []string, uint32, *Owner) (*os.File, error) {
	return nil, errors.ErrUnsupported
}
func bind(*os.File, string) error { return errors.ErrUnsupported }
func unbind(string) error         { return nil }
