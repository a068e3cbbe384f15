// Package cleanup ends all that runs of a data directory and removes what it has
// in the kernel. The directory's files stay.
package cleanup

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"syscall"
	"time"

	"cupola/rootfs"
	"cupola/rootfs/registry"
	"cupola/rootfs/volume"
	"cupola/runtime/cell"
	"cupola/runtime/container"
	"cupola/runtime/files"
	"cupola/runtime/network"
	"cupola/runtime/users"
	"cupola/server/datadir"
	"cupola/server/doctor"
)

// timeout bounds the end of everything that runs.
const timeout = 60 * time.Second

// Runtime is what containers have of this machine, and nothing that decides.
type Runtime struct {
	Dir        *datadir.Dir
	Roots      *rootfs.Store
	Kind       container.Kind // of Containers, which Open opens
	Volumes    *volume.Store
	Containers *container.Engine
	Files      *files.Store
	Network    *network.Network
	Users      cell.Users
}

// Teardown ends all containers and removes every kernel object of the data
// directory's daemon. It closes the network.
func (r *Runtime) Teardown() error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	var errs []error
	for _, list := range []func() ([]string, error){r.containerIDs, r.Roots.List, r.Files.List, r.Network.List, r.Dir.ContainerStates} {
		ids, err := list()
		errs = append(errs, err)
		for _, id := range ids {
			errs = append(errs, r.end(ctx, id))
		}
	}
	errs = append(errs, r.Network.Teardown(ctx), r.Containers.Teardown(), r.Files.Teardown(), r.Volumes.Teardown())
	return errors.Join(errs...)
}

func (r *Runtime) containerIDs() (ids []string, err error) {
	states, err := r.Containers.List()
	for _, s := range states {
		ids = append(ids, s.ID)
	}
	return ids, err
}

func (r *Runtime) end(ctx context.Context, id string) error {
	errs := []error{r.Containers.Remove(ctx, id), r.Volumes.Hide(id), r.Files.Remove(id), r.Roots.Unmount(ctx, id), r.Network.Release(ctx, id)}
	if err := errors.Join(errs...); err != nil {
		return err // its range of users stays claimed
	}
	return errors.Join(os.RemoveAll(r.Dir.Path("cell", id)), r.Users.Release(r.Dir.Path("cell", id)))
}

// Run ends all that runs of a data directory whose daemon has ended.
func Run(ctx context.Context, dataDir string, log *slog.Logger) (err error) {
	if _, err := os.Stat(dataDir); err != nil {
		return fmt.Errorf("no data directory: %w", err)
	}
	dir, err := datadir.Open(dataDir, log)
	if errors.Is(err, syscall.EROFS) {
		return clearReadOnly(ctx, dataDir, log)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	return clearAll(ctx, dir)
}

// Unused is Run for a data directory without containers: one that has some is left as it is.
func Unused(ctx context.Context, dataDir string, log *slog.Logger) (err error) {
	dir, err := datadir.Open(dataDir, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	states, err := dir.ContainerStates()
	if err != nil || len(states) > 0 {
		return err
	}
	return clearAll(ctx, dir)
}

// clearAll ends what runs of an open data directory.
func clearAll(ctx context.Context, dir *datadir.Dir) (err error) {
	roots, err := dir.Roots(registry.Config{}, dir.Egress())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, roots.Close()) }()
	r := &Runtime{Dir: dir, Roots: roots}
	if err := r.Open(ctx); err != nil {
		return err
	}
	return r.Teardown()
}

// Open opens the parts besides the roots.
func (r *Runtime) Open(ctx context.Context) (err error) {
	if err := r.Dir.TakeSubnet(ctx); err != nil {
		return err
	}
	if r.Volumes, err = r.Dir.Volumes(r.Roots); err != nil {
		return err
	}
	if r.Containers, err = r.Dir.Containers(r.Kind, nil); err != nil {
		return err
	}
	if r.Files, err = r.Dir.Files(); err != nil {
		return err
	}
	if r.Users, err = r.Dir.Users(ctx, r.Roots); err != nil {
		return err
	}
	r.Network, err = r.Dir.Network()
	return err
}

// clearReadOnly ends what runs of a data directory whose disk can only be read.
// What notes how far the end of a container has come cannot be written then, so
// it removes what the kernel has as the doctor finds it. The error says what is
// left.
func clearReadOnly(ctx context.Context, dataDir string, log *slog.Logger) (err error) {
	dir, err := datadir.OpenReadOnly(dataDir, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	claims, err := users.Open(users.DefaultDir)
	if err != nil {
		return err
	}
	if err := errors.Join(doctor.Clear(ctx, dir.Owner()), claims.ReleaseBelow(dir.Path("cell"))); err != nil {
		return err
	}
	return fmt.Errorf("nothing of %[1]s runs any longer, but the files of its containers are left, for its disk is read-only: %[2]s, then run 'sudo cupola cleanup --data-dir %[1]s' again", dataDir, datadir.FixReadOnly)
}
