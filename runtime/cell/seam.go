package cell

import (
	"context"
	"net/netip"
	"os"
	"syscall"

	"cupola/rootfs"
	"cupola/runtime/container"
	"cupola/runtime/network"
)

// Containers runs containers: a container.Engine, by Engine. Remove takes any
// ID and is done when nothing of it is left.
type Containers interface {
	Start(context.Context, container.Spec) (container.State, error)
	Exec(ctx context.Context, id string, p container.Process, io container.Stdio) (Process, error)
	Signal(id string, sig syscall.Signal) error
	Wait(ctx context.Context, id string) (container.Exit, error)
	Stats(id string) (container.Stats, error)
	Remove(ctx context.Context, id string) error
	List() ([]container.State, error)
}

// Process is a further process of a container.
type Process interface {
	ID() int // as the host sees it
	Signal(syscall.Signal) error
	Wait(context.Context) (container.Exit, error)
}

// Network gives containers a network namespace. Release takes any ID.
type Network interface {
	Acquire(ctx context.Context, id string) (network.Attachment, error)
	Release(ctx context.Context, id string) error
	Set(context.Context, []network.Policy) error
	List() ([]string, error)
	Resolvers() []netip.Addr // for resolv.conf
}

// RootFS gives containers their file system. Unmount takes any ID.
type RootFS interface {
	Mount(context.Context, rootfs.Request) (rootfs.Root, error)
	Unmount(ctx context.Context, id string) error
	List() ([]string, error)
	Extract(ctx context.Context, id, archive, dest string, owner rootfs.Owner) error
	WriteFile(id, path string, content []byte, mode os.FileMode, uid, gid uint32) error
	Open(id, path string) (*os.File, error)
	DiskUsage(id string) (int64, error)
}

// Engine makes Containers of e.
func Engine(e *container.Engine) Containers { return engine{e} }

type engine struct{ *container.Engine }

func (e engine) Exec(ctx context.Context, id string, p container.Process, io container.Stdio) (Process, error) {
	x, err := e.Engine.Exec(ctx, id, p, io)
	if err != nil {
		return nil, err
	}
	return process{x}, nil
}

type process struct{ *container.Exec }

func (p process) ID() int { return p.PID }
