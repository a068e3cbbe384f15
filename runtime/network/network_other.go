//go:build !linux

package network

import (
	"context"
	"errors"
	"net/netip"
)

// Network attaches containers. It needs Linux.
type Network struct{}

// New returns errors.ErrUnsupported.
func New(Config) (*Network, error) { return nil, errors.ErrUnsupported }

// Acquire returns errors.ErrUnsupported.
func (*Network) Acquire(context.Context, string) (Attachment, error) {
	return Attachment{}, errors.ErrUnsupported
}

// Share returns errors.ErrUnsupported.
func (*Network) Share(context.Context, string, string) (Attachment, error) {
	return Attachment{}, errors.ErrUnsupported
}

// Release returns errors.ErrUnsupported.
func (*Network) Release(context.Context, string) error { return errors.ErrUnsupported }

// Set returns errors.ErrUnsupported.
func (*Network) Set(context.Context, []Policy) error { return errors.ErrUnsupported }

// List returns errors.ErrUnsupported.
func (*Network) List() ([]string, error) { return nil, errors.ErrUnsupported }

// Attachment returns errors.ErrUnsupported.
func (*Network) Attachment(string) (Attachment, error) { return Attachment{}, errors.ErrUnsupported }

// Resolvers returns nothing.
func (*Network) Resolvers() []netip.Addr { return nil }

// Close does nothing.
func (*Network) Close() error { return nil }

// Teardown returns errors.ErrUnsupported.
func (*Network) Teardown(context.Context) error { return errors.ErrUnsupported }
