package admin

import (
	"context"
	"errors"
	"slices"
	"sync"

	"cupola/rootfs"
	"cupola/rootfs/registry"
	"cupola/runtime/container"
	"cupola/server/admin/backup"
	"cupola/server/admin/database"
	"cupola/server/admin/disk"
	"cupola/server/admin/leak"
	"cupola/server/admin/stack"
	"cupola/server/admin/support"
	"cupola/server/cells"
	"cupola/server/databroker"
	"cupola/server/datadir"
)

// opener opens parts of a data directory that no daemon has, and closes them in
// the reverse order.
type opener struct {
	Daemon
	registries registry.Config
	closers    []func() error
}

func newOpener(t Target, dir *datadir.Dir) *opener {
	return &opener{Daemon{Dir: dir, Log: t.Log}, t.Registries, []func() error{dir.Close}}
}

func (o *opener) close() (err error) {
	for _, c := range slices.Backward(o.closers) {
		err = errors.Join(err, c())
	}
	return err
}

func (o *opener) openStore(ctx context.Context) (err error) {
	if o.Store, err = o.Dir.Store(ctx); err == nil {
		o.closers = append(o.closers, o.Store.Close)
	}
	return err
}

func (o *opener) roots() (*rootfs.Store, error) {
	r, err := o.Dir.Roots(o.registries, o.Dir.Egress())
	if err == nil {
		o.closers = append(o.closers, r.Close)
	}
	return r, err
}

func (o *opener) database(ctx context.Context) (*database.Keeper, error) {
	err := o.openStore(ctx)
	return o.Daemon.database(), err
}

func (o *opener) stacks(ctx context.Context) (*stack.Library, error) {
	if err := o.openStore(ctx); err != nil {
		return nil, err
	}
	r, err := o.roots()
	o.Stacks = &stack.Library{Dir: o.Dir, Store: o.Store, Roots: r, Machine: cells.Machine{DataDir: o.Dir.Path(), Roots: r}, GC: &sync.Mutex{}, Log: o.Log}
	return o.Stacks, err
}

func (o *opener) openVolumes(ctx context.Context) error {
	l, err := o.stacks(ctx)
	if err != nil {
		return err
	}
	o.Volumes, err = o.Dir.Volumes(l.Roots)
	return err
}

// blobs opens the blobs, once the stacks are open.
func (o *opener) blobs() (err error) {
	if o.Blobs, err = o.Dir.Blobs(); err == nil {
		o.Blobs.Unpacked = o.Stacks.Roots.Layers
	}
	return err
}

func (o *opener) backup(ctx context.Context) (m *backup.Maker, err error) {
	if err := o.openVolumes(ctx); err != nil {
		return nil, err
	}
	err = o.blobs()
	return o.Daemon.backup(), err
}

func (o *opener) disk(ctx context.Context) (*disk.Keeper, error) {
	_, err := o.stacks(ctx)
	if err != nil {
		return nil, err
	}
	err = o.blobs()
	o.Disk = &disk.Keeper{Dir: o.Dir, Blobs: o.Blobs, Stacks: o.Stacks}
	return o.Disk, err
}

func (o *opener) support(ctx context.Context) (*support.Source, error) {
	_, err := o.disk(ctx)
	o.Support = &support.Source{Store: o.Store, Disk: o.Disk}
	return o.Support, err
}

func (o *opener) dataServices(ctx context.Context) (databroker.Status, error) {
	if _, err := o.stacks(ctx); err != nil {
		return databroker.Status{}, err
	}
	err := o.openVolumes(ctx)
	return o.Daemon.dataServices(), err
}

func (o *opener) leaks(context.Context) (leak.Finder, error) {
	r, err := o.roots()
	if err != nil {
		return nil, err
	}
	c, err := o.Dir.Containers(container.Runc, nil)
	if err != nil {
		return nil, err
	}
	f, err := o.Dir.Files()
	return leak.Stopped(leak.Parts{Dir: o.Dir, Roots: r, Containers: c, Files: f, Log: o.Log}), err
}
