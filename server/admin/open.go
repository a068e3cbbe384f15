package admin

import (
	"context"
	"errors"
	"slices"
	"sync"

	"cupola/rootfs"
	"cupola/server/admin/backup"
	"cupola/server/admin/database"
	"cupola/server/admin/leak"
	"cupola/server/admin/stack"
	"cupola/server/cells"
	"cupola/server/databroker"
	"cupola/server/datadir"
	"cupola/store"
)

// opener opens parts of a data directory that no daemon has, and closes them in
// the reverse order.
type opener struct {
	Target
	dir     *datadir.Dir
	gc      *sync.Mutex
	closers []func() error
}

func newOpener(t Target, dir *datadir.Dir) *opener {
	return &opener{Target: t, dir: dir, gc: &sync.Mutex{}, closers: []func() error{dir.Close}}
}

func (o *opener) close() (err error) {
	for _, c := range slices.Backward(o.closers) {
		err = errors.Join(err, c())
	}
	return err
}

func (o *opener) store(ctx context.Context) (*store.Store, error) {
	s, err := o.dir.Store(ctx)
	if err == nil {
		o.closers = append(o.closers, s.Close)
	}
	return s, err
}

func (o *opener) roots() (*rootfs.Store, error) {
	r, err := o.dir.Roots(o.Registries, o.dir.Egress())
	if err == nil {
		o.closers = append(o.closers, r.Close)
	}
	return r, err
}

func (o *opener) database(ctx context.Context) (*database.Keeper, error) {
	s, err := o.store(ctx)
	return &database.Keeper{Dir: o.dir, Store: s, Log: o.Log}, err
}

func (o *opener) stacks(ctx context.Context) (*stack.Library, error) {
	s, err := o.store(ctx)
	if err != nil {
		return nil, err
	}
	r, err := o.roots()
	return &stack.Library{Dir: o.dir, Store: s, Roots: r, Machine: cells.Machine{DataDir: o.dir.Path(), Roots: r}, GC: o.gc, Log: o.Log}, err
}

func (o *opener) backup(ctx context.Context) (*backup.Maker, error) {
	l, err := o.stacks(ctx)
	if err != nil {
		return nil, err
	}
	b, err := o.dir.Blobs()
	if err != nil {
		return nil, err
	}
	v, err := o.dir.Volumes(l.Roots)
	return &backup.Maker{Dir: o.dir, Store: l.Store, Blobs: b, Volumes: v, Stacks: l, GC: o.gc}, err
}

func (o *opener) dataServices(ctx context.Context) (databroker.Status, error) {
	l, err := o.stacks(ctx)
	if err != nil {
		return databroker.Status{}, err
	}
	v, err := o.dir.Volumes(l.Roots)
	return databroker.Status{Store: l.Store, Volumes: v, Log: o.Log}, err
}

func (o *opener) leaks(context.Context) (leak.Finder, error) {
	r, err := o.roots()
	if err != nil {
		return nil, err
	}
	c, err := o.dir.Containers(nil)
	if err != nil {
		return nil, err
	}
	f, err := o.dir.Files()
	return leak.Stopped(leak.Parts{Dir: o.dir, Roots: r, Containers: c, Files: f, Log: o.Log}), err
}
