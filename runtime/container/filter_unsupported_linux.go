//go:build linux && !amd64 && !arm64

package container

import "errors"

// filter has no table of system calls for this architecture.
func filter() ([]byte, error) { return nil, errors.ErrUnsupported }
