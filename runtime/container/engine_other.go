//go:build !linux

package container

import (
	"context"
	"errors"
	"syscall"
)

// Engine runs containers. It needs Linux.
type Engine struct{}

// New returns errors.ErrUnsupported.
func New(Config) (*Engine, error) { return nil, errors.ErrUnsupported }

// Start returns errors.ErrUnsupported.
func (*Engine) Start(context.Context, Spec) (State, error) { return State{}, errors.ErrUnsupported }

// Exec returns errors.ErrUnsupported.
func (*Engine) Exec(context.Context, string, Process, Stdio) (*Exec, error) {
	return nil, errors.ErrUnsupported
}

// Signal returns errors.ErrUnsupported.
func (*Engine) Signal(string, syscall.Signal) error { return errors.ErrUnsupported }

// Wait returns errors.ErrUnsupported.
func (*Engine) Wait(context.Context, string) (Exit, error) { return Exit{}, errors.ErrUnsupported }

// Stats returns errors.ErrUnsupported.
func (*Engine) Stats(string) (Stats, error) { return Stats{}, errors.ErrUnsupported }

// Remove returns errors.ErrUnsupported.
func (*Engine) Remove(context.Context, string) error { return errors.ErrUnsupported }

// List returns errors.ErrUnsupported.
func (*Engine) List() ([]State, error) { return nil, errors.ErrUnsupported }

// Teardown returns errors.ErrUnsupported.
func (*Engine) Teardown() error { return errors.ErrUnsupported }

// Exec is a further process of a container.
type Exec struct {
	PID        int
	StartTicks uint64
}

// Found returns a process that does nothing.
func (*Engine) Found(string, int, uint64) *Exec { return &Exec{} }

// Wait returns errors.ErrUnsupported.
func (*Exec) Wait(context.Context) (Exit, error) { return Exit{}, errors.ErrUnsupported }

// Signal returns errors.ErrUnsupported.
func (*Exec) Signal(syscall.Signal) error { return errors.ErrUnsupported }
