//go:build !linux

package rootfs

import (
	"errors"
	"os"
)

type overlay struct {
	base               string
	lowers             []string
	point, upper, work string
}

func (overlay) throwaway(string, func(*os.File) error) error { return errors.ErrUnsupported }
func copyRoot(string, string) error                          { return errors.ErrUnsupported }
