//go:build !linux

package volume

import (
	"errors"
	"os"

	"cupola/runtime/users"
)

func openDirectory(string, []string, uint32, *Owner) (*os.File, error) {
	return nil, errors.ErrUnsupported
}
func (s *Store) bind(*os.File, users.Range, string) error { return errors.ErrUnsupported }
func unbind(string) error                                 { return nil }
