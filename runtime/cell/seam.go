package cell

import (
	"context"
	"net/netip"
	"os"
	"syscall"
	"time"

	"cupola/rootfs/image"
	"cupola/rootfs/reference"
	"cupola/rootfs/root"
	"cupola/rootfs/tree"
	"cupola/runtime/container"
	"cupola/runtime/lrp"
	"cupola/runtime/network"
	"cupola/runtime/users"
)

// Containers runs containers: a container.Engine, by Engine. Remove takes any
// ID and is done when nothing of it is left.
type Containers interface {
	Start(context.Context, container.Spec) (container.State, error)
	Exec(ctx context.Context, id string, p container.Process, io container.Stdio) (Process, error)
	// Found is what an Exec of an earlier daemon started, by its ID and Ticks.
	Found(id string, pid int, ticks uint64) Process
	// Relay signals a process of the container as a socket says, which ends with it.
	Relay(ctx context.Context, id string, pid int, ticks uint64, as container.Process, from *os.File) error
	Signal(id string, sig syscall.Signal) error
	Wait(ctx context.Context, id string) (container.Exit, error)
	Stats(id string) (container.Stats, error)
	Starved(id string) time.Duration
	// Freeze stops all processes until Thaw; the next daemon finds them Frozen. Reclaim
	// gives back their memory as far as that can be.
	Freeze(ctx context.Context, id string) error
	Thaw(id string) error
	Frozen(id string) bool
	Reclaim(id string)
	Remove(ctx context.Context, id string) error
	List() ([]container.State, error)
}

// Process is a further process of a container.
type Process interface {
	ID() int       // as the host sees it
	Ticks() uint64 // when it started; with the ID they name one process for good
	Signal(syscall.Signal) error
	Wait(context.Context) (container.Exit, error)
}

// Network gives containers a network namespace. Release takes any ID.
type Network interface {
	Acquire(ctx context.Context, id string) (network.Attachment, error)
	Share(ctx context.Context, id, with string) (network.Attachment, error)
	Release(ctx context.Context, id string) error
	Set(context.Context, []network.Policy) error
	List() ([]string, error)
	Resolvers() []netip.Addr // for resolv.conf
}

// RootFS gives containers their file system. Unmount takes any ID.
type RootFS interface {
	Mount(context.Context, root.Request) (root.Root, error)
	Unmount(ctx context.Context, id string) error
	List() ([]string, error)
	Extract(ctx context.Context, id, archive, dest string, owner tree.Owner) error
	// ExtractLayer is Extract for a layer of an image, whose names begin with "/".
	ExtractLayer(ctx context.Context, id, archive, dest string, owner tree.Owner) error
	WriteFile(id, path string, content []byte, mode os.FileMode, uid, gid uint32) error
	Open(id, path string) (*os.File, error)
	Find(id, path string) (*os.File, error) // a directory, too, and through links
	DiskUsage(id string) (int64, error)
}

// Images pulls the images that roots are made of.
type Images interface {
	Pull(context.Context, reference.Reference, image.PullOptions) (image.Image, error)
}

// Files keeps small files of containers in memory. Remove takes any ID.
type Files interface {
	Create(id string, base uint32, programs bool) error
	Remove(id string) error
	List() ([]string, error)
	Keep(id, name string, content []byte) error
	Kept(id, name string) ([]byte, error)
	Replace(id, tree string, gid uint32, files []lrp.File) error
	Read(id, tree, name string) ([]byte, error) // what Replace wrote
	Path(id, tree string) string
	Used(id string) (int64, error)
}

// Users gives containers their users of the host: a users.Claims or a
// users.Shared. The owner is the container's state directory, which exists from
// before Claim until nothing of the container is left, and Release is for.
type Users interface {
	Claim(owner string) (users.Range, error)
	Release(owner string) error
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

func (e engine) Found(id string, pid int, ticks uint64) Process {
	return process{e.Engine.Found(id, pid, ticks)}
}

type process struct{ *container.Exec }

func (p process) ID() int       { return p.PID }
func (p process) Ticks() uint64 { return p.StartTicks }
