// Package leak finds what is in the kernel or on disk and belongs to no container
// of a data directory.
package leak

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"time"

	"cupola/rootfs"
	"cupola/runtime/cell"
	"cupola/runtime/container"
	"cupola/runtime/files"
	"cupola/runtime/network"
	"cupola/server/datadir"
)

// Finder lists what leaked, a line for each.
type Finder func(context.Context) ([]string, error)

// Find lists what leaked.
func (f Finder) Find(ctx context.Context) ([]string, error) { return f(ctx) }

// Running finds what leaked while the daemon runs. A link counts that is there
// without its namespace for longer than strayGrace. net is nil where the daemon has no containers.
func Running(executor *cell.Cell, net *network.Network) Finder {
	return func(ctx context.Context) ([]string, error) {
		lines, err := executor.Leaks(ctx)
		if err != nil {
			return nil, err
		}
		if net == nil {
			return lines, nil // there are no containers here
		}
		first, err := net.Stray()
		if err != nil || len(first) == 0 {
			return lines, err
		}
		select {
		case <-time.After(strayGrace):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		second, err := net.Stray()
		stray := slices.DeleteFunc(first, func(s string) bool { return !slices.Contains(second, s) })
		return append(lines, stray...), err
	}
}

// Parts are what Stopped looks at.
type Parts struct {
	Dir        *datadir.Dir
	Roots      *rootfs.Store
	Containers *container.Engine
	Files      *files.Store
	Log        *slog.Logger
}

// Stopped finds what leaked while no daemon runs. It makes no network ready for
// containers: an audit leaves nothing behind.
func Stopped(p Parts) Finder {
	return func(ctx context.Context) ([]string, error) {
		audit, err := cell.New(cell.Config{Dir: p.Dir.Path("cell"), Containers: cell.Engine(p.Containers), Network: stillNetwork{ids: p.Dir.Path("netns", "ids")}, RootFS: p.Roots, Files: p.Files, Log: p.Log})
		if err != nil {
			return nil, err
		}
		leaks, err := audit.Leaks(ctx)
		return leaks, errors.Join(err, removeShared(p.Containers))
	}
}

// removeShared removes what containers share if there are none: opening the
// engine may have made it.
func removeShared(containers *container.Engine) error {
	states, err := containers.List()
	if err != nil || len(states) > 0 {
		return err
	}
	return containers.Teardown()
}

// strayGrace is how long a link may stay after its namespace.
const strayGrace = 300 * time.Millisecond

// stillNetwork lists containers' namespaces, and does nothing else.
type stillNetwork struct {
	cell.Network
	ids string
}

// List reads the state directory of a network.Network.
func (n stillNetwork) List() ([]string, error) {
	entries, err := os.ReadDir(n.ids)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var ids []string
	for _, e := range entries {
		ids = append(ids, e.Name())
	}
	return ids, nil
}
