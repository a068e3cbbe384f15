package cell

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"syscall"
	"time"

	"cupola/rootfs/volume"
	"cupola/runtime/container"
	"cupola/runtime/lrp"
)

// errNoVolumes says that the cell has no directories that outlive containers.
var errNoVolumes = errors.New("cell has no volumes")

// How long a volume that only one container may have is waited for, and how
// often it is looked whether it is free.
const (
	volumeWait  = 30 * time.Second
	volumeLooks = 50 * time.Millisecond
)

// openVolumes finds the directories of the container's volumes, once those that
// it wants for itself alone are free.
func (b *build) openVolumes(ctx context.Context) error {
	for _, v := range b.full.Volumes {
		if b.cell.cfg.Volumes == nil || v.Dir != "" && b.cell.cfg.Directories == nil {
			return errNoVolumes
		}
		if err := b.awaitVolume(ctx, v); err != nil {
			return err
		}
		dir, err := b.cell.cfg.Volumes(v.Name)
		if err != nil {
			return &blame{"failed to mount volume", err}
		}
		b.volumes = append(b.volumes, container.Mount{Source: dir, Destination: path.Clean(v.Path), ReadOnly: v.ReadOnly, NoExec: v.NoExec})
	}
	return nil
}

// Directories shows directories of volumes at places that no container can
// change. Show makes a missing one if it is told whose it is to be; Hide takes
// away what a container was shown, which may be nothing.
type Directories interface {
	Show(container string, n int, name, dir string, owner *volume.Owner) (at string, err error)
	Hide(container string) error
}

// showDirectories replaces the volumes of which only a directory is wanted.
func (b *build) showDirectories(context.Context) error {
	for n, v := range b.full.Volumes {
		if v.Dir == "" {
			continue
		}
		var owner *volume.Owner
		if v.Owner != "" {
			u, err := b.lookUp(v.Owner)
			if err != nil {
				return err
			}
			owner = &volume.Owner{UID: u.UID, GID: u.GID}
		}
		at, err := b.cell.cfg.Directories.Show(b.guid(), n, v.Name, v.Dir, owner)
		missing := errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
		if err != nil && !(v.Optional && missing) {
			return &blame{"failed to mount volume", err}
		}
		b.volumes[n].Source = at
	}
	b.volumes = slices.DeleteFunc(b.volumes, func(m container.Mount) bool { return m.Source == "" })
	return nil
}

func (c *Cell) hideDirectories(_ context.Context, guid string) error {
	if c.cfg.Directories == nil {
		return nil
	}
	return c.cfg.Directories.Hide(guid)
}

// awaitVolume waits until no other container has a volume that only one may
// have.
func (b *build) awaitVolume(ctx context.Context, v lrp.Volume) error {
	ctx, cancel := context.WithTimeoutCause(ctx, volumeWait, fmt.Errorf("volume %s is another container's", v.Name))
	defer cancel()
	for v.Exclusive && b.cell.volumeTaken(b.instance, v.Name) {
		select {
		case <-time.After(volumeLooks):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// volumeTaken tells whether a container that was there before i has a volume.
func (c *Cell) volumeTaken(i *instance, name string) bool {
	return slices.ContainsFunc(c.all(), func(other *instance) bool {
		return other != i && other.order < i.order &&
			slices.ContainsFunc(other.spec.Volumes, func(v lrp.Volume) bool { return v.Name == name })
	})
}
