package executor

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"time"

	"cupola/runtime/cell"
	"cupola/runtime/container"
	"cupola/runtime/lrp"
	"cupola/runtime/network"
	"cupola/server/cells"
)

// What a daemon has instead of containers, their networks and files where it runs none: it needs no cgroups, mounts,
// network namespaces or packet filter then.

// ErrNone is of what needs containers of this machine where there are none.
var ErrNone = cells.ErrNone

// OpenAddresses takes the addresses of containers.
func (e *Executor) OpenAddresses(ctx context.Context) error {
	if e.None {
		return nil
	}
	return e.Dir.OpenSubnet(ctx)
}

// refuseContainers refuses a data directory whose containers no cell would manage.
func (e *Executor) refuseContainers() error {
	left, err := e.Dir.ContainerStates()
	if err == nil && len(left) > 0 {
		err = fmt.Errorf("%d containers of %s run on this machine, or must be cleaned up: start without --cells none, move or stop what runs, and run 'cupola cleanup' (%s)", len(left), e.DataDir, strings.Join(left[:min(len(left), 3)], ", "))
	}
	return err
}

type noContainers struct{}

func (noContainers) Start(context.Context, container.Spec) (container.State, error) {
	return container.State{}, cells.ErrNone
}

func (noContainers) Exec(context.Context, string, container.Process, container.Stdio) (cell.Process, error) {
	return nil, cells.ErrNone
}
func (noContainers) Relay(context.Context, string, int, uint64, container.Process, *os.File) error {
	return cells.ErrNone
}
func (noContainers) Found(string, int, uint64) cell.Process { return nil }
func (noContainers) Signal(string, syscall.Signal) error    { return cells.ErrNone }
func (noContainers) Wait(context.Context, string) (container.Exit, error) {
	return container.Exit{}, cells.ErrNone
}
func (noContainers) Stats(string) (container.Stats, error) { return container.Stats{}, cells.ErrNone }
func (noContainers) Starved(string) time.Duration          { return 0 }
func (noContainers) Freeze(context.Context, string) error  { return cells.ErrNone }
func (noContainers) Thaw(string) error                     { return cells.ErrNone }
func (noContainers) Frozen(string) bool                    { return false }
func (noContainers) Reclaim(string)                        {}
func (noContainers) Remove(context.Context, string) error  { return nil }
func (noContainers) List() ([]container.State, error)      { return nil, nil }

type noNetwork struct{}

func (noNetwork) Acquire(context.Context, string) (network.Attachment, error) {
	return network.Attachment{}, cells.ErrNone
}

func (noNetwork) Share(context.Context, string, string) (network.Attachment, error) {
	return network.Attachment{}, cells.ErrNone
}
func (noNetwork) Release(context.Context, string) error       { return nil }
func (noNetwork) Set(context.Context, []network.Policy) error { return nil }
func (noNetwork) List() ([]string, error)                     { return nil, nil }
func (noNetwork) Resolvers() []netip.Addr                     { return nil }

type noFiles struct{}

func (noFiles) Create(string, uint32, bool) error                { return cells.ErrNone }
func (noFiles) Remove(string) error                              { return nil }
func (noFiles) List() ([]string, error)                          { return nil, nil }
func (noFiles) Keep(string, string, []byte) error                { return cells.ErrNone }
func (noFiles) Kept(string, string) ([]byte, error)              { return nil, cells.ErrNone }
func (noFiles) Replace(string, string, uint32, []lrp.File) error { return cells.ErrNone }
func (noFiles) Read(string, string, string) ([]byte, error)      { return nil, cells.ErrNone }
func (noFiles) Path(string, string) string                       { return "" }
func (noFiles) Used(string) (int64, error)                       { return 0, nil }
