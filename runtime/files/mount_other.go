//go:build !linux

package files

import "errors"

func mount(string, uint32, bool) error { return errors.ErrUnsupported }
func hold(string) error                { return errors.ErrUnsupported }
func unmount(string) error             { return nil }
func used(string) (int64, error)       { return 0, errors.ErrUnsupported }
