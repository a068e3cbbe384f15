//go:build !linux

package network

import (
	"errors"
	"net/netip"
)

// ProbeFilter returns errors.ErrUnsupported.
func ProbeFilter() error { return errors.ErrUnsupported }

// ProbeLink returns errors.ErrUnsupported.
func ProbeLink() error { return errors.ErrUnsupported }

// Look returns errors.ErrUnsupported.
func Look() (Survey, error) { return Survey{}, errors.ErrUnsupported }

// HostResolvers returns nothing.
func HostResolvers() []netip.Addr { return nil }

// Stray returns errors.ErrUnsupported.
func (*Network) Stray() ([]string, error) { return nil, errors.ErrUnsupported }
