//go:build !linux

package network

import (
	"errors"
)

// ProbeFilter returns errors.ErrUnsupported.
func ProbeFilter() error { return errors.ErrUnsupported }

// ProbeLink returns errors.ErrUnsupported.
func ProbeLink() error { return errors.ErrUnsupported }

// Look returns errors.ErrUnsupported.
func Look() (Survey, error) { return Survey{}, errors.ErrUnsupported }

// Stray returns errors.ErrUnsupported.
func (*Network) Stray() ([]string, error) { return nil, errors.ErrUnsupported }
