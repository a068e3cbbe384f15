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

// Uses returns errors.ErrUnsupported.
func Uses() ([]Use, error) { return nil, errors.ErrUnsupported }

// Live returns errors.ErrUnsupported.
func Live(string) (bool, error) { return false, errors.ErrUnsupported }

// Claim returns errors.ErrUnsupported.
func Claim(string, netip.Prefix) error { return errors.ErrUnsupported }

// Stray returns errors.ErrUnsupported.
func (*Network) Stray() ([]string, error) { return nil, errors.ErrUnsupported }
