//go:build !linux

package root

import "errors"

func (s *Roots) mountRoot(Request, []string, string, string) error { return errors.ErrUnsupported }
