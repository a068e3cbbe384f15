package admin

import (
	"context"
	"log/slog"

	"cupola/rootfs/volume"
	"cupola/runtime/cell"
	"cupola/runtime/fault"
	"cupola/runtime/network"
	"cupola/server/admin/backup"
	"cupola/server/admin/collect"
	"cupola/server/admin/database"
	"cupola/server/admin/disk"
	"cupola/server/admin/leak"
	"cupola/server/admin/offsite"
	"cupola/server/admin/stack"
	"cupola/server/admin/support"
	"cupola/server/cells"
	"cupola/server/databroker"
	"cupola/server/datadir"
	"cupola/server/uaa"
	"cupola/store"
	"cupola/store/blob"
)

// Daemon is the parts of a daemon that the operations need: of one that runs, or
// those that a command opened.
type Daemon struct {
	Dir     *datadir.Dir
	Store   *store.Store
	Blobs   *blob.Store
	Volumes *volume.Store
	Stacks  *stack.Library
	Keys    *uaa.Keys
	Cell    *cell.Cell
	Cells   func() cells.Uses
	Network *network.Network
	Invite  Inviter
	Offsite *offsite.Live
	Disk    *disk.Keeper
	Support *support.Source
	Offer   func() databroker.Offer // of the built-in service broker; nil without a daemon
	Log     *slog.Logger
}

func (d *Daemon) stacks() *stack.Library { return d.Stacks }
func (d *Daemon) keys() *uaa.Keys        { return d.Keys }
func (d *Daemon) leaks() leak.Finder     { return leak.Running(d.Cell, d.Network) }

func (d *Daemon) cells() func() cells.Uses { return d.Cells }

func (d *Daemon) inviter() Inviter { return d.Invite }

func (d *Daemon) offsite() *offsite.Keeper { return d.Offsite.Keeper() }

func (d *Daemon) disk() *disk.Keeper { return d.Disk }

func (d *Daemon) support() *support.Source { return d.Support }

// OpenOffsite opens what makes backups away from this machine.
func (d *Daemon) OpenOffsite(f offsite.Flags, version string) {
	d.Offsite = offsite.NewLive(offsite.Config{Flags: f, Maker: d.backup(), Secret: d.Dir.Path("db", store.KeyFile), State: d.Dir.Path("db", "offsite.json"), Version: version, Log: d.Log})
}

func (d *Daemon) database() *database.Keeper {
	return &database.Keeper{Dir: d.Dir, Store: d.Store, Log: d.Log}
}

func (d *Daemon) backup() *backup.Maker {
	return &backup.Maker{Blobs: d.Blobs, Volumes: d.Volumes, Stacks: d.Stacks}
}

func (d *Daemon) dataServices() databroker.Status {
	s := databroker.Status{Store: d.Store, Volumes: d.Volumes, HasFile: d.Stacks.HasServiceFile, Log: d.Log}
	if d.Offer != nil {
		s.Offer = d.Offer()
	}
	return s
}

// Start does in a group, until live ends, what no operator needs to ask for: it
// deletes garbage, and caches where the disk is short, copies the database, makes backups, and answers
// other commands of cupola. It calls listening when they can reach it.
func (d *Daemon) Start(live context.Context, group *fault.Group, listening func()) {
	c := collect.Collector{Blobs: d.Blobs, Stacks: d.Stacks}
	group.Go(fault.Loop(live, "tidy", c.Run))
	group.Go(fault.Loop(live, "disk", d.Disk.Watch))
	group.Go(fault.Loop(live, "database", d.database().Run))
	group.Go(fault.Loop(live, "offsite", d.Offsite.Run))
	group.Go(fault.Loop(live, "control", func(ctx context.Context) error { return d.serve(ctx, listening) }))
}
